# The workers of bench/lnorm-bench: what runs lnorm, the copies and a plain loop; oneDNN, where it is found; and the
# benchmark's memory and numbers as a shared library, for the Python workers. `make bench` builds and runs them.
# LNORM_ONEDNN: where to look for oneDNN first, a prefix with include/ and lib/.
set(LNORM_ONEDNN "" CACHE PATH "A prefix of oneDNN for the benchmark")
if(NOT UNIX)
    return()
endif()
find_package(Threads REQUIRED)

set(bench ${PROJECT_SOURCE_DIR}/bench)
add_library(lnorm_bench_common OBJECT ${bench}/worker.c ${bench}/problem.c ${bench}/data.c ${bench}/threads.c)
target_link_libraries(lnorm_bench_common PRIVATE lnorm lnorm_warnings Threads::Threads)

add_library(lnorm_bench_data SHARED ${bench}/data.c)
target_link_libraries(lnorm_bench_data PRIVATE lnorm_warnings)

add_executable(lnorm_bench_worker ${bench}/lnorm_worker.c ${bench}/lnorm_level1.c ${bench}/lnorm_plan.c
    ${bench}/copies.c $<TARGET_OBJECTS:lnorm_bench_common>)
target_link_libraries(lnorm_bench_worker PRIVATE lnorm lnorm_warnings Threads::Threads)

# The plain loop, compiled with further flags: its functions are called NAME_open and so on.
function(lnorm_bench_loop name)
    set(flags -O3 -ffast-math ${ARGN})
    string(JOIN " " text ${flags})
    add_library(lnorm_${name} OBJECT ${bench}/plain_loop.c)
    target_compile_options(lnorm_${name} PRIVATE ${flags})
    target_compile_definitions(lnorm_${name} PRIVATE BENCH_LOOP=${name} "BENCH_LOOP_FLAGS=\"${text}\"")
    target_link_libraries(lnorm_${name} PRIVATE lnorm lnorm_warnings)
    target_sources(lnorm_bench_worker PRIVATE $<TARGET_OBJECTS:lnorm_${name}>)
endfunction()
include(CheckCCompilerFlag)
check_c_compiler_flag(-march=native LNORM_HAVE_MARCH_NATIVE)
lnorm_bench_loop(bench_loop $<$<BOOL:${LNORM_HAVE_MARCH_NATIVE}>:-march=native>)
check_c_compiler_flag(-march=x86-64-v3 LNORM_HAVE_MARCH_AVX2)
if(LNORM_HAVE_MARCH_AVX2)
    lnorm_bench_loop(bench_loop_avx2 -march=x86-64-v3)
    target_compile_definitions(lnorm_bench_worker PRIVATE BENCH_LOOP_AVX2=1)
endif()

find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.h HINTS ${LNORM_ONEDNN}/include)
find_library(ONEDNN_LIBRARY dnnl HINTS ${LNORM_ONEDNN}/lib ${LNORM_ONEDNN}/lib64)
if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY)
    add_executable(lnorm_bench_onednn ${bench}/onednn.c $<TARGET_OBJECTS:lnorm_bench_common>)
    target_include_directories(lnorm_bench_onednn SYSTEM PRIVATE ${ONEDNN_INCLUDE})
    target_link_libraries(lnorm_bench_onednn PRIVATE ${ONEDNN_LIBRARY} lnorm lnorm_warnings Threads::Threads)
endif()
mark_as_advanced(ONEDNN_INCLUDE ONEDNN_LIBRARY)
