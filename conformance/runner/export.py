"""Cases in another form: kernels assembled to tileirbc or tilebc, everything else as it was."""

import concurrent.futures
import json
import os
import re
import shutil
import tempfile
import zipfile

FORM = re.compile(r"text|tilebc|tileirbc(@13\.[1-5])?")


def number(version):
    return tuple(int(x) for x in version.split("."))


class Exporter:
    """Turns cases into `form` (text, tilebc, tileirbc, tileirbc@13.3 ...)."""

    def __init__(self, form, assembler):
        if not FORM.fullmatch(form):
            raise ValueError(f"{form} is no form: expected text, tilebc, tileirbc or tileirbc@13.1 to tileirbc@13.5")
        self.kind, _, self.version = form.partition("@")
        self.form, self.assembler = form, assembler
        # Short-lived files; memory where there is some.
        self.tmp = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None

    def convert(self, ref):
        """(case.json as a dictionary, file name -> bytes), or (name, why it has no such form)."""
        case, files = ref.load()
        if case["form"] == self.kind == "text":
            return case, files
        too_new = self.version and number(case["needs"]["version"]) > number(self.version)
        if too_new:
            return case["case"], f"needs version {case['needs']['version']}"
        if case["form"] == self.kind:
            return case, files
        if case["form"] != "text":
            return case["case"], f"a file of form {case['form']} is what this case is about"
        if case["expect"]["outcome"] == "rejected":
            return case["case"], "a text that must be rejected has no other form"
        with tempfile.TemporaryDirectory(dir=self.tmp) as folder:
            with open(os.path.join(folder, "kernel.tile"), "wb") as f:
                f.write(files[case["kernel"]])
            name, error = self.assembler.convert(folder, self.form)
            if not name:
                return case["case"], f"not assembled: {error.strip()[:200]}"
            with open(os.path.join(folder, name), "rb") as f:
                data = f.read()
        del files[case["kernel"]]
        needs = dict(case["needs"], version=self.version) if self.version else case["needs"]
        return dict(case, form=self.kind, kernel=name, needs=needs), {name: data, **files}

    def all(self, refs, jobs):
        """Converted cases in the order of `refs`, as convert() gives them."""
        with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
            yield from pool.map(self.convert, refs)


def case_text(case):
    """One key a line at the top, as the generator writes it."""
    return "{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in case.items()) + "\n}\n"


def write_folder(root, case, files):
    folder = os.path.join(root, *case["case"].split("/"))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as f:
        f.write(case_text(case))
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


class ZipWriter:
    """Cases of any families in one file; protocol.md, section 6. Equal cases give equal contents."""

    def __init__(self, path, stored=False):
        self.path, self.index = path, []
        self.kind = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        self.zip = zipfile.ZipFile(path + ".tmp", "w", self.kind, compresslevel=None if stored else 9)

    def put(self, name, data):
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        info.compress_type = self.kind
        self.zip.writestr(info, data)

    def add(self, case, files):
        self.index.append([case["case"], case["tier"], case["case"]])
        self.put(case["case"] + "/case.json", case_text(case))
        for name, data in files.items():
            self.put(f"{case['case']}/{name}", data)

    def close(self):
        self.put("index.json", json.dumps(self.index))
        self.zip.close()
        os.replace(self.path + ".tmp", self.path)
