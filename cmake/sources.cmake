# The library's source files. The list is written out, so that what a build contains can be read here; a file that is in
# the directory but not in the list, or the other way round, stops the configuration.
set(LNORM_SOURCES
    src/access.c
    src/blocks.c
    src/channels.c
    src/channels_rows.c
    src/columns.c
    src/columns_backward.c
    src/columns_forward.c
    src/columns_rows.c
    src/columns_statistics.c
    src/dispatch.c
    src/fast_elements.c
    src/gather.c
    src/general.c
    src/general_affine.c
    src/general_backward.c
    src/general_groups.c
    src/general_runs.c
    src/layer.c
    src/level1.c
    src/long.c
    src/long_fast.c
    src/message.c
    src/plan.c
    src/pointers.c
    src/pool.c
    src/problem.c
    src/reference.c
    src/reference_engine.c
    src/reference_wide.c
    src/reference_wide_gradients.c
    src/rows.c
    src/tensor.c
    src/wide.c
    src/isa/isa_avx2.c
    src/isa/isa_avx512.c
    src/isa/isa_neon.c
    src/isa/isa_scalar.c
    src/isa/isa_sse2.c
    src/isa/wide_avx2.c
    src/isa/wide_avx512.c
    src/isa/wide_neon.c
    src/isa/wide_scalar.c
    src/isa/wide_sse2.c)

file(GLOB lnorm_found RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/src/*.c ${PROJECT_SOURCE_DIR}/src/isa/*.c)
set(lnorm_unlisted ${lnorm_found})
list(REMOVE_ITEM lnorm_unlisted ${LNORM_SOURCES})
set(lnorm_missing ${LNORM_SOURCES})
if(lnorm_found)
    list(REMOVE_ITEM lnorm_missing ${lnorm_found})
endif()
if(lnorm_unlisted OR lnorm_missing)
    message(FATAL_ERROR "cmake/sources.cmake and the directory src/ differ.\n"
        "not in the list: ${lnorm_unlisted}\nnot in the directory: ${lnorm_missing}")
endif()
