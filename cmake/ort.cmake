# liblnorm_ort: operators for ONNX Runtime (docs/onnx.md). Built where ORT_INCLUDE_DIR names the directory of
# onnxruntime_c_api.h, which ONNX Runtime's packages for Python do not carry.
set(ORT_INCLUDE_DIR "" CACHE PATH "Directory of onnxruntime_c_api.h; empty: no operators for ONNX Runtime")
if(ORT_INCLUDE_DIR)
    if(NOT EXISTS ${ORT_INCLUDE_DIR}/onnxruntime_c_api.h)
        message(FATAL_ERROR "ORT_INCLUDE_DIR: expected a directory with onnxruntime_c_api.h, got ${ORT_INCLUDE_DIR}")
    endif()
    add_library(lnorm_ort MODULE ${PROJECT_SOURCE_DIR}/ort/lnorm_ort.c)
    target_include_directories(lnorm_ort SYSTEM PRIVATE ${ORT_INCLUDE_DIR})
    target_link_libraries(lnorm_ort PRIVATE lnorm lnorm_warnings)
    set_target_properties(lnorm_ort PROPERTIES C_VISIBILITY_PRESET hidden)
    if(UNIX AND NOT APPLE)
        # Of the core nothing is exported: two of them in one process do not meet.
        target_link_options(lnorm_ort PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined)
    endif()
    install(TARGETS lnorm_ort LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
