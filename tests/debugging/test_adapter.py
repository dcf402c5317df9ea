"""The Debug Adapter Protocol: the requests of an editor, from the start of a program to its end."""

import base64
import json
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudart_py.debugging
from tests.debugging.conftest import KERNELS

pytestmark = pytest.mark.needs("debugger")

# The kernels are a literal of the program, so that an editor sets breakpoints in the program's own lines.
PROGRAM = f'''
import sys

import numpy as np

import cudart_py as cuda

KERNELS = """
{KERNELS}"""

module = cuda.compile(KERNELS)
x = cuda.to_device(np.arange(1, 65, dtype=np.float32))
out = cuda.zeros(1, np.float32)
print("begins", *sys.argv[1:])
module["total"][1, 64](x, out, 64)
print("total", out.to_host()[0])
module["reversed"][1, 64](x)
cuda.current_device().synchronize()
'''


class Client:
    """An editor's side of the protocol, on standard streams, or at a TCP port."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "cudart_py", "debug", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._source, self._target = self.process.stdout, self.process.stdin
        if "--port" in options:
            assert self.process.stderr is not None
            port = int(self.process.stderr.readline().removeprefix(b"waiting at port "))
            connected = socket.create_connection(("127.0.0.1", port))
            self._source, self._target = connected.makefile("rb"), connected.makefile("wb")
            connected.close()  # the files keep it open
        self.events: list[dict[str, Any]] = []
        self._sent = 0

    def request(self, command: str, **arguments: object) -> dict[str, Any]:
        """Send a request, and return the response; events that come before it are kept."""
        self._sent += 1
        text = json.dumps({"seq": self._sent, "type": "request", "command": command, "arguments": arguments}).encode()
        assert self._target is not None
        self._target.write(b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
        self._target.flush()
        for message in self._messages():
            if message["type"] == "response":
                assert (message["command"], message["request_seq"]) == (command, self._sent)
                return message
        raise AssertionError(self._failure())

    def body(self, command: str, **arguments: object) -> Any:
        """Send a request that must succeed, and return the body of the response."""
        response = self.request(command, **arguments)
        assert response["success"], response
        return response.get("body")

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the body of the next event of a kind, and drop the events before it."""
        while self.events:
            known = self.events.pop(0)
            if known["event"] == event:
                return known["body"]
        for message in self._messages():
            if message.get("event") == event:
                self.events.clear()
                return message["body"]
        raise AssertionError(self._failure())

    def _messages(self) -> Iterator[dict[str, Any]]:
        stream = self._source
        assert stream is not None
        while header := stream.readline():
            stream.readline()
            message = json.loads(stream.read(int(header.partition(b":")[2])))
            if message["type"] == "event":
                self.events.append(message)
            yield message

    def _failure(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


@pytest.fixture
def client(request) -> Iterator[Client]:
    """Return a client of a debugger with the options of the mark `parametrize`, by default on standard streams."""
    made = Client(*getattr(request, "param", ("--adapter",)))
    yield made
    made.process.kill()
    made.process.communicate()


def test_an_editor_sets_breakpoints_in_the_program_steps_both_ways_and_sees_lanes_and_a_race(client, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    lines = PROGRAM.splitlines()
    adding = lines.index("            tile[threadIdx.x] += tile[threadIdx.x + step];") + 1

    abilities = client.body("initialize", adapterID="cudart-py")
    abilities_used = ("supportsStepBack", "supportsReadMemoryRequest", "supportsValueFormattingOptions")
    assert all(abilities[one] for one in abilities_used)
    client.wait_for("initialized")
    client.body("launch", program=str(path), args=["now"])
    condition = [{"line": adding, "condition": "step == 16 && threadIdx.x == 5"}]
    made = client.body("setBreakpoints", source={"path": str(path)}, breakpoints=condition)["breakpoints"]
    assert [one["verified"] for one in made] == [False], "no kernel has been launched"
    client.body("setExceptionBreakpoints", filters=["findings"])
    client.body("configurationDone")

    changed = client.wait_for("breakpoint")["breakpoint"]
    assert (changed["verified"], changed["line"]) == (True, adding)
    stop = client.wait_for("stopped")
    assert stop["reason"] == "breakpoint"
    threads = client.body("threads")["threads"]
    assert [thread["name"] for thread in threads] == [
        f"block (0, 0, 0) warp {warp}, lanes 0xffffffff" for warp in range(2)
    ]
    frame = client.body("stackTrace", threadId=stop["threadId"])["stackFrames"][0]
    assert (frame["line"], frame["source"]["path"], frame["name"]) == (adding, str(path), "total, thread (5, 0, 0)")

    def evaluate(text: str) -> str:
        at = client.body("stackTrace", threadId=stop["threadId"])["stackFrames"][0]["id"]
        return client.body("evaluate", expression=text, frameId=at, context="watch")["result"]

    numbers = np.arange(1, 65, dtype=np.float32)
    folded = numbers[:32] + numbers[32:]
    assert float(evaluate("tile[threadIdx.x + step]")) == folded[21]
    scopes = {scope["name"]: scope for scope in client.body("scopes", frameId=frame["id"])["scopes"]}

    def unfold(shown: dict[str, Any]) -> dict[str, dict[str, Any]]:
        parts = client.body("variables", variablesReference=shown["variablesReference"])["variables"]
        return {part["name"]: part for part in parts}

    variables = unfold(scopes["Locals"])
    assert (variables["step"]["value"], variables["step"]["type"]) == ("16", "int")
    assert unfold(variables["x"])["*"]["value"] == "1", "the pointer points to the first element"
    lanes = unfold(unfold(scopes["Lanes of the warp"])["value"])
    assert [float(lanes[f"lane {lane}"]["value"]) for lane in range(16)] == numbers[:16].tolist()
    assert "lane 16" not in lanes, "it is not active"
    tile = unfold(unfold(scopes["Shared memory"])["tile"])
    assert tile["[40]"]["value"].startswith("41, written by thread 40 at line ")
    assert unfold(scopes["Thread"])["active lanes"]["value"] == "0x0000ffff"
    said = client.body("evaluate", expression="info warps", context="repl")["result"]
    assert "0x0000ffff" in said

    # Formats, and memory as bytes.
    frame = client.body("stackTrace", threadId=stop["threadId"])["stackFrames"][0]
    shown = client.body("evaluate", expression="tile[7]", frameId=frame["id"], format={"hex": True})
    assert int(shown["result"], 16) == folded[7].view(np.uint32)
    assert evaluate("step,t") == "10000"
    assert client.body("evaluate", expression="print/x step", context="repl")["result"] == "0x10"
    assert client.body("evaluate", expression="x/2fw tile", context="repl")["result"].split("\t")[1] == f"{folded[0]:g}"
    assert "total" in client.body("evaluate", expression="frame", context="repl")["result"]
    whole = client.body("evaluate", expression="tile", frameId=frame["id"])
    memory = client.body("readMemory", memoryReference=whole["memoryReference"], offset=4 * 40, count=4 * 100)
    content = np.frombuffer(base64.b64decode(memory["data"]), np.float32)
    np.testing.assert_array_equal(content, numbers[40:])
    assert memory["unreadableBytes"] == 4 * 100 - content.nbytes
    assert int(memory["address"], 16) == int(whole["memoryReference"].partition("@")[0], 16) + 4 * 40
    at = client.body("evaluate", expression="x", frameId=frame["id"])["memoryReference"]
    memory = client.body("readMemory", memoryReference=at, count=4 * 64)
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(memory["data"]), np.float32), numbers)

    # Commands that choose another thread, or resume, are followed by a stop of that thread.
    client.body("evaluate", expression="cuda thread 7", context="repl")
    stop = client.wait_for("stopped")
    assert evaluate("threadIdx.x") == "7"
    # The lines of the kernel's own text, which begins with an empty line.
    barrier = KERNELS.splitlines().index("        __syncthreads();") + 2
    client.body("evaluate", expression=f"until {barrier}", context="repl")
    stop = client.wait_for("stopped")
    assert evaluate("threadIdx.x") == "7"
    client.body("stepBack", threadId=stop["threadId"])
    stop = client.wait_for("stopped")
    assert client.body("stackTrace", threadId=stop["threadId"])["stackFrames"][0]["line"] == adding

    client.body("next", threadId=stop["threadId"])
    stop = client.wait_for("stopped")
    assert float(evaluate("tile[5]")) == folded[5] + folded[21]
    client.body("stepBack", threadId=stop["threadId"])
    stop = client.wait_for("stopped")
    assert client.body("stackTrace", threadId=stop["threadId"])["stackFrames"][0]["line"] == adding
    assert float(evaluate("tile[5]")) == folded[5]

    refused = client.request("evaluate", expression="nothing", context="watch")
    assert not refused["success"]
    assert "no variable is named 'nothing'" in refused["message"]
    client.body("setBreakpoints", source={"path": str(path)}, breakpoints=[])
    # Going forward from the past ends where the launch has stopped.
    client.body("continue", threadId=stop["threadId"])
    stop = client.wait_for("stopped")
    assert stop["reason"] == "step"
    client.body("continue", threadId=stop["threadId"])
    stop = client.wait_for("stopped")
    assert stop["reason"] == "exception"
    assert "race" in client.body("exceptionInfo", threadId=stop["threadId"])["description"]
    client.body("continue", threadId=stop["threadId"])
    assert client.wait_for("exited") == {"exitCode": 0}
    client.wait_for("terminated")
    client.body("disconnect")
    assert client.process.wait(30) == 0


@pytest.mark.parametrize("client", [("--port", "0")], indirect=True)
def test_the_programs_output_and_its_failure_are_events_and_unknown_requests_are_refused(client, tmp_path):
    path = tmp_path / "program.py"
    path.write_text('import sys\nprint("arguments", sys.argv[1:])\nraise KeyError("lost")\n')
    client.body("initialize")
    assert not client.request("restartFrame")["success"]
    assert not client.request("stackTrace", threadId=1)["success"]
    client.body("launch", program="program.py", args=["one"], cwd=str(tmp_path))
    client.body("configurationDone")
    written = ""
    while "KeyError: 'lost'" not in written:
        written += client.wait_for("output")["output"]
    assert "arguments ['one']" in written
    assert client.wait_for("exited") == {"exitCode": 1}


def test_the_extension_for_vs_code_starts_the_adapter_with_settings_that_it_reads():
    folder = Path(cudart_py.debugging.__file__).parent
    [debugger] = json.loads((folder / "vscode/extension/package.json").read_text())["contributes"]["debuggers"]
    assert [debugger["runtime"], *debugger["args"]] == ["cudart-py", "debug", "--adapter"]
    read = "".join(path.read_text() for path in (folder / "adapter").glob("*.py"))
    settings = debugger["configurationAttributes"]["launch"]["properties"]
    assert [name for name in settings if f'"{name}"' not in read] == []
    # VS Code sends only the settings of launch.json, and starts the adapter in a folder of its own.
    assert all(new["cwd"] == "${workspaceFolder}" for new in debugger["initialConfigurations"])


def test_the_guides_command_packs_the_extension_as_vs_code_reads_it(tmp_path):
    # VS Code reads the manifest of a .vsix file from extension/package.json, and refuses any other layout.
    guide = (Path(__file__).parents[2] / "docs/guide/debugger.md").read_text()
    [command] = [line.strip() for line in guide.splitlines() if "-m zipfile" in line]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=True)
    with zipfile.ZipFile(tmp_path / "cudart-py.vsix") as packed:
        manifest = json.loads(packed.read("extension/package.json"))
    # VS Code refuses a manifest without these fields.
    assert all(manifest[field] for field in ("name", "publisher", "version", "engines"))
