"""Says what a program of this package contains: a bill of materials, or the licences of all parts.

    sbom.py bom VERSION SECONDS          CycloneDX 1.5 as JSON; SECONDS since 1970 date it
    sbom.py licences                     every licence and notice, as text

Reads Package.resolved in the current folder, checkouts in SCRATCH_PATH (.build), and the licence of the Swift toolchain,
whose libraries are linked into the program. A licence that it does not know is an error, so that a person looks at it.
"""

import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

checkouts = pathlib.Path(os.environ.get("SCRATCH_PATH", ".build")) / "checkouts"


def fail(sentence):
    sys.exit(f"error: {sentence}")


def identifier(text, path):
    """The SPDX expression of a licence's text."""
    if "Runtime Library Exception" in text:
        return "Apache-2.0 WITH Swift-exception"
    if re.search(r"Apache License\s+Version 2\.0", text):
        return "Apache-2.0"
    if "MIT License" in text:
        return "MIT"
    return fail(f"{path} is a licence that scripts/lib/sbom.py does not know: read it, then add it there.")


def swift():
    """The toolchain, as a part: its version, its licence's file."""
    said = subprocess.run(["swift", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"Swift version (\S+)", said).group(1)
    compiler = pathlib.Path(shutil.which("swift")).resolve()
    texts = [folder / "share/swift/LICENSE.txt" for folder in compiler.parents]
    text = next((text for text in texts if text.exists()), None)
    return {
        "name": "swift", "version": version, "url": "https://github.com/swiftlang/swift", "revision": None,
        "files": [text] if text else fail(f"The Swift toolchain at {compiler} has no licence beside it."),
    }


def parts():
    """Every package that the program is built with, by name, then the toolchain."""
    found = []
    for pin in json.loads(pathlib.Path("Package.resolved").read_text())["pins"]:
        url = pin["location"].removesuffix(".git")
        folder = checkouts / url.rsplit("/", 1)[1]
        files = sorted(folder.glob("LICEN[SC]E*")) + sorted(folder.glob("NOTICE*"))
        if not files:
            fail(f"{folder} has no licence: run 'swift package resolve' first.")
        state = pin["state"]
        found.append({
            "name": pin["identity"], "version": state["version"], "url": url, "revision": state["revision"],
            "files": files,
        })
    return sorted(found, key=lambda part: part["name"]) + [swift()]


def component(part):
    """A part in CycloneDX's words."""
    address = f"pkg:swift/{part['url'].removeprefix('https://')}@{part['version']}"
    made = {
        "type": "library", "bom-ref": address, "name": part["name"], "version": part["version"], "purl": address,
        "licenses": [{"expression": identifier(part["files"][0].read_text(), part["files"][0])}],
        "externalReferences": [{"type": "vcs", "url": part["url"]}],
    }
    if part["revision"]:
        made["properties"] = [{"name": "revision", "value": part["revision"]}]
    return made


def bill(version, seconds):
    components = [component(part) for part in parts()]
    own = f"pkg:generic/perennial@{version}"
    date = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([own, components], sort_keys=True))
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1,
        "metadata": {
            "timestamp": date.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": own, "name": "perennial", "version": version, "purl": own,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def licences():
    for part in parts():
        for file in part["files"]:
            yield f"{'=' * 80}\n{part['name']} {part['version']}, {part['url']}: {file.name}\n{'=' * 80}\n"
            yield file.read_text().rstrip() + "\n\n"


match sys.argv[1:]:
    case ["bom", version, seconds]:
        json.dump(bill(version, seconds), sys.stdout, indent=2)
        print()
    case ["licences"]:
        sys.stdout.writelines(licences())
    case _:
        sys.exit(__doc__)
