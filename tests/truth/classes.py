"""Sorts x86-64 instruction texts (objdump, Intel syntax) into the seven classes of a mix.

Purpose: a table that owes nothing to the product's own decoder, so that the two can be compared.

The classes: fp = floating-point arithmetic, scalar or packed, x87 included, conversions and
compares; vector = integer SIMD, and SIMD moves, shuffles, logic and cryptography; int = integer
arithmetic, address arithmetic, moves between registers; load and store = moves that touch memory,
push and pop, vector loads and stores, prefetches; branch = jumps, calls, returns; other = the
rest. Arithmetic with an operand in memory is arithmetic.

Run by itself it reads texts, one per line, and prints their classes.

Pitfall: a mnemonic that no table knows is `other` and is told by `is_known`, never silently lost.
"""

import re
import sys

CLASSES = ("fp", "vector", "int", "load", "store", "branch", "other")

PREFIXES = re.compile(
    r"^(?:(?:lock|repn?z|repne|repe?|bnd|notrack|data16|data32|addr32|xacquire|xrelease|"
    r"[cdefgs]s|rex(?:\.[WRXB]+)?|\{vex3?\}|\{evex\}) )+(?=\S)"
)

BRANCH = re.compile(r"^(j[a-z]+|call|ret[fq]?|iretq?|loopn?[ez]*|bnd)$")

SCALAR_OR_PACKED = r"(ss|sd|ps|pd|sh|ph)"
FP = re.compile(
    r"^v?(add|sub|mul|div|sqrt|min|max|rcp(14|28)?|rsqrt(14|28)?|cmp[a-z_]*|u?comi|round|"
    r"rndscale|range|reduce|getexp|getmant|scalef|fixupimm|dp|hadd|hsub|addsub|fpclass|exp2|"
    rf"fn?m(addsub|subadd|add|sub)(132|213|231)?){SCALAR_OR_PACKED}$"
)
FP_CONVERSION = re.compile(r"^v?cvt")
X87_MOVE = re.compile(r"^(fld|fst|fstp)$")
X87_CONTROL = re.compile(
    r"^f(n?(stcw|stsw|stenv|save|clex|init)|ldcw|ldenv|xsave(64)?|xrstor(64)?|rstor|wait|emms|nop|"
    r"free|incstp|decstp)$|^fwait$"
)
X87 = re.compile(
    r"^f(ld|st|add|sub|mul|div|com|ucom|i|chs|abs|sqrt|sin|cos|ptan|patan|2xm1|yl2x|scale|prem|"
    r"rndint|xtract|tst|xam|xch|cmov|bld|bst)\w*$"
)

INTEGER = re.compile(
    r"^(add|adc|adcx|adox|sub|sbb|inc|dec|neg|not|and|andn|or|xor|cmp|test|imul|mul|mulx|idiv|div|"
    r"lea|sh[lr]|sh[lr]d|sa[lr]|sa[lr]x|sh[lr]x|ro[lr]|rorx|rc[lr]|bt[csr]?|bs[fr]|bswap|lzcnt|tzcnt|"
    r"popcnt|blsr|blsi|blsmsk|bextr|bzhi|pdep|pext|crc32[bwlq]?|set[a-z]+|cmov[a-z]+|xchg|xadd|"
    r"cmpxchg(8b|16b)?|cbw|cwde|cdqe|cwd|cdq|cqo|clc|stc|cmc|lahf|sahf|movz[xb][wlq]?|"
    r"movsxd?|cmps|scas)$"
)
MOVE = re.compile(r"^(mov|movabs|movzx|movsxd?|movbe|movnti)$")
PUSH_POP = {"push": "store", "pop": "load", "pushf": "store", "popf": "load", "leave": "load"}
STRING = {"movs": "store", "stos": "store", "lods": "load", "xlat": "load"}

VECTOR_MOVE = re.compile(
    r"^v?(mov(a|u)p[sd]|movdq[au](8|16|32|64)?|mov(ss|sd|d|q|lps|hps|lpd|hpd|sh|w)|lddqu|"
    r"movnt(dqa?|ps|pd|q)|maskmov\w*|pmaskmov[dq]|broadcast\w+|pbroadcast[bwdq]|"
    r"pgather\w+|gather\w+|pscatter\w+|scatter\w+|(extract|insert)[fi]\d+(x\d)?|"
    r"p(compress|expand)[bwdq]|(compress|expand)p[sd]|pext r|movddup|mov(sl|sh)dup)$"
)
VECTOR = re.compile(
    r"^(v?p(abs|ack|add|align|and|avg|blend|clmul|cmp|conflict|dp|ermi?|ermt?|erm|extr|hadd|hminpos|"
    r"hsub|insr|lzcnt|madd|max|min|mov|mul|multishift|opcnt|or|ro[lr]|sad|shuf|sign|sll|sra|srl|sub|"
    r"tern|test|unpck|xor|sh[lr]d|broadcast)\w*|"
    r"v?(and|andn|or|xor)p[sd]|v?(shuf|unpck[lh]|blendv?|perm\w*|test|movmsk)p[sd]|v?perm2[fi]128|"
    r"v?insertps|v?extractps|v?mov(hl|lh)ps|v?mov(dq2q|q2dq)|v?aes\w+|sha(1|256)\w+|"
    r"v?gf2p8\w+|vzero(upper|all)|v?mpsadbw|v?dbpsadbw|valign[dq]|vshuf[fi]\d+x\d|"
    r"k(mov|and|andn|or|xor|xnor|not|shift[lr]|ortest|test|add|unpck)\w*)$"
)

PREFETCH = re.compile(r"^prefetch")
OTHER = re.compile(
    r"^(nop[wlq]?|endbr(64|32)|pause|hlt|int3?|ud[0-2]|cpuid|rdtscp?|rdpid|xgetbv|xsetbv|syscall|"
    r"sysenter|sysret|[lsm]fence|v?(ld|st)mxcsr|xsavec?(64|opt)?|xrstor(64)?|"
    r"rdrand|rdseed|clflush(opt)?|clwb|cldemote|emms|rd[fg]sbase|wr[fg]sbase|rdssp[dq]|incssp[dq]|"
    r"serialize|tpause|umwait|umonitor|xbegin|xend|xabort|xtest|rdpkru|wrpkru|in|out|sti|cli|cld|std)$"
)


def classify(text):
    """The class of an instruction's text; `other` where no table knows it."""
    return _known(text) or "other"


def is_known(text):
    """Whether some table holds the instruction."""
    return _known(text) is not None


def _known(text):
    mnemonic, operands = split(text)
    if mnemonic == "xchg" and operands in ("ax,ax", "rax,rax", "eax,eax"):
        return "other"  # what assemblers write for a nop
    for rule in (_flow, _floating, _moves, _arithmetic):
        found = rule(mnemonic, operands)
        if found:
            return found
    return None


def split(text):
    """The mnemonic without prefixes, and the operands."""
    text = PREFIXES.sub("", " ".join(text.split("#")[0].split("<")[0].split()))
    mnemonic, _, operands = text.partition(" ")
    return mnemonic, operands.strip()


def _flow(mnemonic, _operands):
    if BRANCH.match(mnemonic):
        return "branch"
    return "other" if OTHER.match(mnemonic) or X87_CONTROL.match(mnemonic) else None


def _floating(mnemonic, operands):
    if X87_MOVE.match(mnemonic) and "[" in operands:
        return "load" if mnemonic == "fld" else "store"
    if FP.match(mnemonic) or FP_CONVERSION.match(mnemonic) or X87.match(mnemonic):
        return "fp"
    return None


def _moves(mnemonic, operands):
    if mnemonic in PUSH_POP:
        return PUSH_POP[mnemonic]
    if mnemonic in STRING:
        return STRING[mnemonic]
    if PREFETCH.match(mnemonic):
        return "load"
    if MOVE.match(mnemonic):
        return memory_move(operands) or "int"
    if VECTOR_MOVE.match(mnemonic):
        return memory_move(operands) or "vector"
    return None


def _arithmetic(mnemonic, _operands):
    if INTEGER.match(mnemonic):
        return "int"
    return "vector" if VECTOR.match(mnemonic) else None


def memory_move(operands):
    """`store` where the first operand is in memory, `load` where another is, else None.

    An absolute address is written `ds:0x10` or `fs:0x28`, without brackets.
    """
    first, *rest = split_operands(operands)
    if in_memory(first):
        return "store"
    return "load" if any(map(in_memory, rest)) else None


def in_memory(operand):
    return "[" in operand or " PTR " in operand or re.match(r"^[cdefgs]s:", operand) is not None


def split_operands(operands):
    """Operands in Intel syntax hold no comma within themselves."""
    return operands.split(",")


if __name__ == "__main__":
    for line in sys.stdin:
        print(classify(line.strip()))
