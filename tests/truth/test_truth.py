#!/usr/bin/env python3
"""Tests of the ground truth itself: python3 -m unittest discover tests/truth"""

import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import callgrind
import catalogue
import classes
import compare
import disassembly
import mix

EXPECTED = {
    "fp": """addsd xmm0,xmm1 | mulps xmm0,XMMWORD PTR [rax] | vfmadd231pd ymm0,ymm1,ymm2
        | cvtsi2sd xmm0,rax | ucomisd xmm0,xmm1 | sqrtsd xmm0,xmm0 | fmul st,st(1) | fxch st(1)
        | cmpltsd xmm0,xmm1 | roundsd xmm0,xmm1,0x1 | vcvttsd2si rax,xmm0 | fild QWORD PTR [rsp]
        | vmaxpd ymm0,ymm1,ymm2 | haddpd xmm0,xmm0 | fadd st,st(1)""",
    "vector": """paddd xmm0,xmm1 | pxor xmm0,xmm0 | xorps xmm0,xmm0 | movaps xmm0,xmm1
        | movd xmm0,eax | vpshufb ymm0,ymm1,ymm2 | aesenc xmm0,xmm1 | sha256rnds2 xmm1,xmm2,xmm0
        | pmovmskb eax,xmm0 | vpcmpeqb ymm0,ymm1,YMMWORD PTR [rdi] | shufps xmm0,xmm1,0x0
        | unpcklpd xmm0,xmm1 | pclmulqdq xmm0,xmm1,0x0 | kmovd eax,k1 | vextracti128 xmm0,ymm1,0x1
        | pinsrw xmm0,WORD PTR [rax],0x1 | palignr xmm0,xmm1,0x4 | vpermq ymm0,ymm1,0x4e
        | vpternlogd ymm0,ymm1,ymm2,0xff | andnpd xmm0,xmm1 | psadbw xmm0,xmm1 | vpmovzxbw ymm0,xmm1
        | vzeroupper""",
    "int": """add rax,0x1 | add DWORD PTR [rax],0x1 | lea rax,[rbx+rcx*4] | mov rax,rbx
        | mov eax,0x5 | imul rax,rbx | div rcx | xor eax,eax | cmp BYTE PTR [rdi],0x0 | sete al
        | cmovne rax,QWORD PTR [rbx] | lock cmpxchg QWORD PTR [rdx],rcx | movzx eax,bl | shl rax,0x3
        | mulx rdx,rax,rcx | bswap eax | cdqe | repz cmps BYTE PTR ds:[rsi],BYTE PTR es:[rdi]""",
    "load": """mov rax,QWORD PTR [rbx] | movzx eax,BYTE PTR [rdi] | pop rbp
        | movups xmm0,XMMWORD PTR [rax] | movsd xmm0,QWORD PTR [rip+0x10]        # 2008 <x>
        | mov rax,QWORD PTR fs:0x28 | vbroadcastss ymm0,DWORD PTR [rax] | prefetcht0 BYTE PTR [rax]
        | fld QWORD PTR [rsp+0x8] | movsxd rax,DWORD PTR [rdx+rax*4] | lddqu xmm0,XMMWORD PTR [rax]
        | leave | movhps xmm0,QWORD PTR [rax]""",
    "store": """mov QWORD PTR [rbx],rax | push rbp | movaps XMMWORD PTR [rax],xmm0
        | rep stos QWORD PTR es:[rdi],rax | rep movs BYTE PTR es:[rdi],BYTE PTR ds:[rsi]
        | fstp TBYTE PTR [rsp] | movss DWORD PTR [rax],xmm0 | mov BYTE PTR [rax],0x0
        | movntdq XMMWORD PTR [rax],xmm0 | vextracti128 XMMWORD PTR [rax],ymm1,0x1""",
    "branch": """jmp 1040 <x> | jne 1040 | call QWORD PTR [rax] | ret | bnd jmp QWORD PTR [rax]
        | notrack jmp rax | repz ret | call 1030 <puts@plt> | jrcxz 10""",
    "other": """nop WORD PTR cs:[rax+rax*1+0x0] | endbr64 | xchg ax,ax | syscall | cpuid | mfence
        | pause | cld | data16 cs nop WORD PTR [rax+rax*1] | rdtsc | fnstcw WORD PTR [rsp]""",
}

# A program of two threads' worth of lines, of which the line behind `calls=` is not its own.
CALLGRIND = """version: 1
pid: 12
cmd:  ./x
thread: 2
desc: D1 cache: 32768 B, 64 B, 8-way associative
positions: instr
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim
ob=/bin/x
fn=main
0x10 5 5 0 1 2 3 1 1 1
0x12 5 0 0 0 0 0 0 0 0 5 2
calls=1 0x99
0x12 900 900
ob=/lib/y
0x10 7
0x10 1
"""


def costs(*rows):
    """{offset: Cost} of (offset, count, level-1 misses)."""
    return {offset: callgrind.Cost(count, 0, misses, 0) for offset, count, misses in rows}


class Classes(unittest.TestCase):
    def test_each_table(self):
        for kind, listing in EXPECTED.items():
            for text in listing.split("|"):
                with self.subTest(text=text.strip()):
                    self.assertTrue(classes.is_known(text.strip()))
                    self.assertEqual(classes.classify(text.strip()), kind)

    def test_a_stranger_is_other_and_told(self):
        self.assertEqual(classes.classify("frobnicate rax"), "other")
        self.assertFalse(classes.is_known("frobnicate rax"))
        self.assertFalse(classes.is_known("(bad)"))


class Callgrind(unittest.TestCase):
    def test_costs_are_summed_per_address_and_callees_left_out(self):
        thread = callgrind.parse(CALLGRIND.splitlines(keepends=True))
        self.assertEqual((thread.pid, thread.number, thread.command), (12, 2, "./x"))
        self.assertEqual(
            thread.costs,
            {
                callgrind.Address("/bin/x", 0x10): callgrind.Cost(5, 0, 6, 3),
                callgrind.Address("/bin/x", 0x12): callgrind.Cost(5, 2, 0, 0),
                callgrind.Address("/lib/y", 0x10): callgrind.Cost(8, 0, 0, 0),
            },
        )
        self.assertEqual(mix.cycles(thread.costs[callgrind.Address("/bin/x", 0x10)]), 5 + 60 + 300)


    def test_what_goes_beyond_the_start_grows(self):
        def thread(**counts):
            rows = {callgrind.Address("x", int(a[1:])): callgrind.Cost(n, 0, 0, 0) for a, n in counts.items()}
            return callgrind.Thread(1, 1, "./x", [], rows)

        grown = callgrind.extrapolate([thread(a1=10, a2=7), thread(a1=20)], [thread(a1=10, a3=4)], 5.0)
        counts = {address.offset: cost.instructions for address, cost in grown.costs.items()}
        self.assertEqual(counts, {1: 110.0, 2: 35.0, 3: 0.0})


class Mix(unittest.TestCase):
    def test_a_stall_is_shared_by_its_block(self):
        total = mix.Mix()
        text = {0: "mov rax,QWORD PTR [rax]", 3: "add rax,rbx", 6: "jne 0", 8: "addsd xmm0,xmm1"}
        total.add_object(costs((0, 10, 3), (3, 10, 0), (6, 10, 0), (8, 10, 0)), text)
        report = total.report()
        self.assertAlmostEqual(report["time_by_block"]["load"], 20 / 70)
        self.assertAlmostEqual(report["time_by_block"]["int"], 20 / 70)
        self.assertAlmostEqual(report["time_by_block"]["fp"], 10 / 70)
        self.assertAlmostEqual(report["time_by_instruction"]["load"], 40 / 70)
        self.assertAlmostEqual(report["count"]["load"], 0.25)

    def test_blocks_end_at_branches_gaps_and_other_counts(self):
        def instruction(offset, kind="int", count=1):
            return mix.Instruction(offset, kind, count, 1)

        cut = mix.blocks([
            instruction(0), instruction(4, "branch"), instruction(6), instruction(9, count=2),
            instruction(40, count=2), instruction(44, count=2),
        ])
        self.assertEqual([[i.offset for i in block] for block in cut], [[0, 4], [6], [9], [40, 44]])

    def test_code_without_text_is_unknown_and_shares_are_of_the_rest(self):
        total = mix.Mix()
        total.add_object(costs((0, 30, 0), (100, 10, 0)), {100: "ret"})
        report = total.report()
        self.assertEqual(report["unknown_share"], 0.75)
        self.assertEqual(report["count"]["branch"], 1.0)

    def test_nothing_at_all(self):
        self.assertEqual(mix.Mix().report()["unknown_share"], 0.0)


class Catalogue(unittest.TestCase):
    def test_every_program_is_complete(self):
        for name, program in catalogue.programs().items():
            with self.subTest(name=name):
                self.assertLess(program.get("truth", 1), program["native"] + 1)
                self.assertIn(program.get("expect", "int"), ("fp", "int"))
                self.assertNotEqual("truth" in program, "expect" in program)
                self.assertTrue(program["ours"] or program["package"])
                with tempfile.TemporaryDirectory() as folder:
                    small = {**program, "truth": 1}
                    with contextlib.suppress(catalogue.Missing):
                        words = catalogue.command(small, "truth", folder)
                        self.assertFalse(any("{" in word for word in words), words)


class Compare(unittest.TestCase):
    def verdict(self, truth_fp, estimates):
        """Runs the comparison of one program with threads of (cpu_s, fp share)."""
        with tempfile.TemporaryDirectory() as folder:
            truth = pathlib.Path(folder, "truth.json")
            report = pathlib.Path(folder, "report.json")
            exact = dict.fromkeys(compare.CLASSES, 0.0) | {"fp": truth_fp, "int": 1 - truth_fp}
            total = {"time_by_block": exact}
            truth.write_text(json.dumps({"programs": [{"name": "p", "total": total}]}))
            threads = [
                {"cpu_s": s, "class": "fp", "mix": {"fp": fp, "int": 1 - fp}} for s, fp in estimates
            ]
            report.write_text(json.dumps({"threads": threads}))
            rows = compare.read_rows(truth, [f"p={report}"], "time_by_block")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                compare.print_table(rows)
                return compare.print_verdict(rows), out.getvalue()

    def test_threads_weigh_by_cpu_time(self):
        status, text = self.verdict(0.75, [(3, 1.0), (1, 0.0)])
        self.assertEqual(status, 0)
        self.assertIn("mean absolute fp error 0.000", text)

    def test_errors_above_the_limit_fail(self):
        self.assertEqual(self.verdict(0.8, [(1, 0.69)])[0], 1)
        self.assertEqual(self.verdict(0.8, [(1, 0.71)])[0], 0)

    def test_fp_taken_for_int_fails_even_within_the_limit(self):
        status, text = self.verdict(0.56, [(1, 0.49)])
        self.assertEqual(status, 1)
        self.assertIn("CONFUSED", text)

    def test_a_close_call_is_no_confusion(self):
        self.assertEqual(self.verdict(0.52, [(1, 0.48)])[0], 0)

    def test_reports_without_a_mix_are_bad_input(self):
        with self.assertRaises(compare.BadInput):
            self.verdict(0.5, [(0, 0.5)])


@unittest.skipUnless(shutil.which("valgrind") and shutil.which("gcc"), "skipped: no valgrind or gcc")
class WholeChain(unittest.TestCase):
    """A loop with known counts, from C to the mix."""

    SOURCE = """int main(void) {
        double x = 1.0;
        for (long i = 0; i < 1000000; i++)
            __asm__ volatile("addsd %0, %0\\n\\tmulsd %0, %0\\n\\tpaddd %%xmm5, %%xmm6" : "+x"(x));
        return 0;
    }"""

    def test_counts_of_a_known_loop(self):
        with tempfile.TemporaryDirectory() as folder:
            program = str(pathlib.Path(folder, "loop"))
            compiler = ["gcc", "-O2", "-x", "c", "-", "-o", program]
            subprocess.run(compiler, input=self.SOURCE, text=True, check=True)
            (thread,) = callgrind.run([program], folder)
            own = {a.offset: c for a, c in thread.costs.items() if a.object == program}
            total = mix.Mix()
            total.add_object(own, disassembly.texts(program, own))
        # Three instructions as written, and the loop's own decrement and branch.
        count = {kind: round(n / 1e6) for kind, n in total.by_count.items() if n > 1e5}
        self.assertEqual(count, {"fp": 2, "vector": 1, "int": 1, "branch": 1})


if __name__ == "__main__":
    unittest.main()
