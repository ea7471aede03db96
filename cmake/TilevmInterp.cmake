# Flags of the interpreter. -ffp-contract=off: a * b + c must round twice unless the semantics say fma.
# -fno-math-errno lets sqrt and friends be single instructions; it changes no value.
get_target_property(type tile_interp TYPE)
if(NOT type STREQUAL "INTERFACE_LIBRARY")
  target_compile_options(tile_interp PRIVATE -ffp-contract=off -fno-math-errno)
  # clang reports loops that it was asked to vectorise and could not, which is usual in unoptimised and sanitized builds.
  target_compile_options(tile_interp PRIVATE $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)

  # vm/interp/isa/*_avx2.cpp and *_avx512.cpp are the same kernels compiled for wider vectors; isa.cpp chooses at run time.
  get_target_property(sources tile_interp SOURCES)
  set(kept)
  foreach(file ${sources})
    if(file MATCHES "/vm/interp/isa/[^/]*_avx(2|512)\\.cpp$")
      if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        continue()
      endif()
      if(file MATCHES "_avx512\\.cpp$")  # not CMAKE_MATCH_1, which the comparison above has overwritten
        set(flags -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512)
      else()
        set(flags -mavx2 -mfma -mf16c)
      endif()
      set_property(SOURCE ${file} PROPERTY COMPILE_OPTIONS ${flags})
    endif()
    # Vectorised selection and conversion need the promise that no floating-point exception is looked at; no value changes.
    if(file MATCHES "/vm/interp/isa/elementwise_[^/]*\\.cpp$" AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT TILEVM_SANITIZE)
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -O3 -fno-trapping-math)
    endif()
    list(APPEND kept ${file})
  endforeach()
  set_target_properties(tile_interp PROPERTIES SOURCES "${kept}")
endif()
