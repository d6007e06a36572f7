"""--device, as a user calls it on a machine that has no device.

    devices_test.py TACTUS SOURCE_FOLDER
"""

import ctypes
import sys
import unittest

from command_case import CommandCase, SOURCE, tactus


def has_driver():
    try:
        return ctypes.CDLL("libcuda.so.1") is not None
    except OSError:
        return False


class Devices(CommandCase):
    def test_a_device_that_is_none_is_refused(self):
        for words in (("serve", "--models", SOURCE / "models"),
                      ("profile", "--models", SOURCE / "models")):
            for device in ("gpu:0", "cuda", "cuda:x"):
                self.bad(*words, "--device", device, says=f"'{device}' is not a device; give cpu")
            self.bad(*words, "--device", "cuda:0,cpu", says="has cpu in a list; give either cpu")

    @unittest.skipIf(has_driver(), "there is a driver")
    def test_without_a_driver_one_line_says_what_is_missing(self):
        out = self.folder / "profile.json"
        for words in (("serve", "--models", SOURCE / "models"),
                      ("profile", "--models", SOURCE / "models", "--out", out)):
            done = tactus(*words, "--device", "cuda:0")
            self.assertEqual(done.returncode, 2, done.stdout)
            lines = done.stderr.strip().splitlines()
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertIn("--device: ", lines[0])
            # A build without CUDA's header names that first.
            missing = "cuda.h" if "cuda.h" in lines[0] else "libcuda.so.1"
            self.assertIn(missing, lines[0])
            self.assertRegex(lines[0], "install NVIDIA's driver|run ./run setup gpu")
            self.assertRegex(lines[0], "or leave --device out$")
        self.assertFalse(out.exists())

    def test_plans_split_one_device(self):
        done = tactus("serve", "--models", SOURCE / "models", "--device", "cuda:0,cuda:1",
                      "--policy", "planned", "--planner", "gpulet-retry", "--on-share",
                      "100=whole.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("split one device", done.stderr)

    def test_a_share_of_a_processor_is_threads(self):
        # Before ONNX Runtime is looked for.
        for more in ((), ("--onnxruntime", self.folder)):
            self.bad("profile", "--models", SOURCE / "models", "--share", 50, *more,
                     says="--share 50: on the processor a share is a number of threads; give "
                          "--threads instead, or name a device with --device")
        self.bad("profile", "--models", SOURCE / "models", "--engine", "op", "--device", "cuda:0",
                 "--share", 50, says="--share 50: ")

    def test_engines_of_the_processor_take_no_device(self):
        self.bad("profile", "--models", SOURCE / "models", "--engine", "identity", "--device",
                 "cuda:0", says="engine 'identity' takes no --device")
        self.bad("serve", "--models", SOURCE / "models", "--engine", "emulated", "--device",
                 "cuda:0", says="engine 'emulated' takes no --device: leave it out")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
