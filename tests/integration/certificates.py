"""Certificates that `tactus cluster` does not make: of a cluster's authority, with other dates."""

import os
import shutil
import subprocess


def certify(authority, folder, node, begins, ends):
    """A certificate of the authority for the key that is in `folder`, from and until YYYYMMDD."""
    work = folder / "signing"
    work.mkdir()
    (work / "index.txt").write_text("")
    (work / "config").write_text(
        f"[ca]\ndefault_ca = one\n[one]\ndatabase = {work}/index.txt\nnew_certs_dir = {work}\n"
        "default_md = sha256\npolicy = any\nrand_serial = yes\nx509_extensions = node\n"
        "[any]\ncommonName = supplied\n"
        f"[node]\nbasicConstraints = critical,CA:FALSE\nsubjectAltName = URI:tactus://{node}\n"
        "keyUsage = critical,digitalSignature\n")
    subprocess.run(["openssl", "req", "-new", "-key", folder / "node.key", "-subj", f"/CN={node}",
                    "-out", work / "request"], check=True, capture_output=True)
    subprocess.run(["openssl", "ca", "-batch", "-notext", "-config", work / "config", "-cert",
                    authority / "authority.pem", "-keyfile", authority / "authority.key", "-in",
                    work / "request", "-startdate", f"{begins}000000Z", "-enddate",
                    f"{ends}000000Z", "-out", work / "made"], check=True, capture_output=True)
    os.replace(work / "made", folder / "node.pem")
    shutil.rmtree(work)


def day(offset):
    """Days from now, as YYYYMMDD."""
    return subprocess.run(["date", "-u", "-d", f"{offset} days", "+%Y%m%d"], check=True,
                          capture_output=True, text=True).stdout.strip()
