"""A server of the Model Context Protocol for tests: over standard input and output, or over HTTP with `--http`.

The first argument is a directory that it shares with the test: it notes there what it is told, and reads from it how it is
to behave.
"""

import json
import os
import sys
import time

PLACE = sys.argv[1]
FILE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def note(name, line):
    with open(os.path.join(PLACE, name), "a") as file:
        file.write(line + "\n")


def setting(name, default=""):
    try:
        with open(os.path.join(PLACE, name)) as file:
            return file.read().strip()
    except OSError:
        return default


def tools():
    names = ["echo", "big", "crash", "hang", "fail", "look", "change"]
    about = {"echo": setting("about-echo", "Repeats a text.")}
    return [{"name": name, "description": about.get(name, ""), "inputSchema": FILE} for name in names]


def text_result(text, is_error=False):
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def call(name, text):
    if name == "echo":
        return text_result("said: " + text)
    if name == "big":
        return text_result("x" * int(text))
    if name == "crash":
        print("about to fail", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "hang":
        note("hanging", "call")
        return None
    if name == "fail":
        return text_result("it went wrong", True)
    if name == "look":
        return text_result(repr(eval(text, {"os": os})))
    if name == "change":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text_result("changed")
    raise KeyError(name)


def answer(message):
    """Returns the result of a request, or None if there is no answer."""
    method, params = message["method"], message.get("params", {})
    note("methods", method)
    if method == "initialize":
        time.sleep(float(setting("slow", "0")))
        version = params["protocolVersion"]
        info = {"name": "test", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}).get("text", ""))
    if method == "ping":
        return {}
    return None


def respond(message):
    result = answer(message)
    if "id" in message and result is not None:
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return None


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def serve_stdio():
    for line in sys.stdin:
        response = respond(json.loads(line))
        if response:
            send(response)


def serve_http():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            note("authorization", self.headers.get("Authorization", "none"))
            note("key", self.headers.get("X-Key", "none"))
            body = self.rfile.read(int(self.headers["Content-Length"]))
            response = respond(json.loads(body))
            data = json.dumps(response).encode() if response else b""
            self.send_response(200 if response else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            self.send_error(405)

        do_DELETE = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


note("starts", "start")
print("the test server has started", file=sys.stderr, flush=True)
serve_http() if "--http" in sys.argv else serve_stdio()
