"""stub.py HEADER: C source that defines every function which the header declares, to trap. Compiled with debugging
information, it is the header's interface as abidiff can read it."""

import re
import sys

text = re.sub(r"/\*.*?\*/", " ", open(sys.argv[1]).read(), flags=re.S)
functions = re.findall(r"^LNORM_API ([^;{#]*\));", text, flags=re.M)
print(f'#include "{sys.argv[1]}"')
for function in functions:
    print(f"LNORM_API {function} {{ __builtin_trap(); }}")
