"""The table finds what did not run: see table.py."""

import unittest

import table

EVERYTHING = set().union(*table.HERE.values())
KERNELS = ["matmul", "softmax"]


def report(cpu, targets, emulated=True, aes=None):
    return {
        "cpu": cpu,
        "emulated": emulated,
        "aes": aes,
        "tests": {target: [f"{kernel}_test" for kernel in KERNELS] if emulated else [] for target in targets},
        "checks": {target: KERNELS + ["model"] for target in targets},
        "texts": {target: "unfused" if target in table.UNFUSED else "fused" for target in (targets[:1] if emulated else targets)},
    }


class Table(unittest.TestCase):
    def setUp(self):
        self.reports = {
            "this": report("this", list(table.HERE), emulated=False),
            "Westmere": report("Westmere", ["SSE4", "SSSE3", "scalar"]),
            "Haswell": report("Haswell", ["AVX2", "SSE4", "SSSE3", "scalar"]),
            "AArch64": report("AArch64", ["NEON"], aes="1"),
            "masked": report("masked", ["NEON"], aes="0"),
        }

    def failures(self, features=frozenset(EVERYTHING)):
        rows = [row for each in self.reports.values() for row in table.target_rows(each)]
        return table.find_failures(rows, features)

    def test_all_ran(self):
        self.assertEqual(self.failures(), [])

    def test_a_target_that_this_cpu_lacks_need_not_run(self):
        for part in ("tests", "checks", "texts"):
            del self.reports["this"][part]["AVX3"]
        self.assertEqual(self.failures(), ["AVX3 did not run in full on this CPU"])
        self.assertEqual(self.failures(EVERYTHING - {"avx512bw"}), [])

    def test_a_part_of_the_list_is_not_enough(self):
        for cpu, where in (("this", "on this CPU"), ("Westmere", "under emulation")):
            for part, less in (("tests", ["matmul_test"]), ("checks", ["matmul"]), ("texts", None)):
                self.setUp()
                self.reports[cpu][part]["SSE4"] = less
                missed = [] if (cpu, part) == ("this", "tests") else [f"SSE4 did not run in full {where}"]
                self.assertEqual(self.failures(), missed, (cpu, part))

    def test_what_ran_nowhere_is_missed_everywhere(self):
        for part, count in (("tests", len(table.EMULATED)), ("checks", len(table.HERE) + len(table.EMULATED))):
            self.setUp()
            for each in self.reports.values():
                each[part] = {target: [] for target in each[part]}
            self.assertEqual(len(self.failures()), count, part)

    def test_each_emulated_cpu_must_run(self):
        for cpu, target in (("Westmere", "SSE4"), ("Haswell", "AVX2"), ("AArch64", "NEON"), ("masked", "NEON without AES")):
            self.setUp()
            del self.reports[cpu]
            self.assertEqual(self.failures(), [f"{target} did not run in full under emulation"], cpu)
        self.reports = {}
        self.assertEqual(len(self.failures()), len(table.HERE) + len(table.EMULATED))

    def test_a_mask_without_effect(self):
        self.reports["masked"]["aes"] = "1"
        self.assertEqual(self.failures(), ["NEON without AES did not run in full under emulation"])

    def test_newer_highway_names_the_target_without_aes(self):
        self.reports["masked"] = report("masked", ["NEON_WITHOUT_AES"], aes="0")
        self.assertEqual(self.failures(), [])

    def test_other_texts(self):
        self.reports["AArch64"]["texts"]["NEON"] = "other"
        self.assertEqual(self.failures(), ["different texts on targets with fused multiply-add"])
        self.reports["this"]["texts"]["scalar"] = "other"
        self.assertEqual(len(self.failures()), 2)


if __name__ == "__main__":
    unittest.main()
