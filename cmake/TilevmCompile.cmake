# Compiler flags of every target of this project (and of nothing outside it): warnings, sanitizers.

add_library(tilevm_compile INTERFACE)
target_compile_options(tilevm_compile INTERFACE -Wall -Wextra
                       # Designated initializers name what differs from the defaults; the rest is left out on purpose.
                       -Wno-missing-field-initializers
                       # Messages of failed checks name files from the root of the source tree, wherever it was built.
                       -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

# gcc 12 reports -Wrestrict inside std::string::operator+ at -O2 and above (gcc bug 105651); it is never about our code.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tilevm_compile INTERFACE -Wno-restrict)
endif()
if(TILEVM_WERROR)
  target_compile_options(tilevm_compile INTERFACE -Werror)
endif()

if(TILEVM_SANITIZE)
  set(sanitizers -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(tilevm_compile INTERFACE ${sanitizers})
  target_link_options(tilevm_compile INTERFACE ${sanitizers})
endif()

# With clang the libraries carry libFuzzer's coverage counters, so that one build serves tests and fuzz targets.
set(TILEVM_LIBFUZZER OFF)
if(TILEVM_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(TILEVM_LIBFUZZER ON)
  target_compile_options(tilevm_compile INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(tilevm_compile INTERFACE -fsanitize=fuzzer-no-link)
endif()
