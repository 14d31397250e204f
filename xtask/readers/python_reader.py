"""A server that says what Python's own library reads: http.server, http.cookies, urllib, email, json, xml."""

import posixpath
from email.parser import BytesParser
from email.utils import collapse_rfc2231_value
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from readings import HEADERS, add, decoded, documents, text_of

BODY_BYTES_MAX = 1 << 22


class Reader(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One segment for head and body: with two, each response waits for an acknowledgement.
    wbufsize = -1

    def __getattr__(self, name):
        # Any method is served alike.
        if name.startswith("do_"):
            return self.say
        raise AttributeError(name)

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").strip().lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
                if len(body) > BODY_BYTES_MAX:
                    raise ValueError("a body is too large")
            while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                pass
            return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def say(self):
        read = {}
        try:
            body = self.body()
        except ValueError:
            self.send_error(400)
            self.close_connection = True
            return
        add(read, "size", len(body))
        self.head(read)
        self.form(read, body)
        documents(read, decoded(self.headers.get("Content-Encoding"), body))
        text = text_of(read)
        self.send_response(200)
        self.send_header("X-Reader", "python")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def head(self, read):
        # The second is what SimpleHTTPRequestHandler looks for.
        path = self.path.split("?", 1)[0].split("#", 1)[0]
        add(read, "path", unquote(path), posixpath.normpath(unquote(path)))
        try:
            url = urlsplit(self.path)
            add(read, "path", unquote(url.path))
            query = url.query
        except ValueError:
            query = self.path.partition("?")[2]
        add(read, "host", self.headers.get("Host", "").rsplit(":", 1)[0])
        values = parse_qs(query, keep_blank_values=True)
        add(read, "query.my_plan", *values.get("my_plan", []))
        if "auth" in values:
            add(read, "query.auth", values["auth"][0])
        cookies = SimpleCookie()
        try:
            cookies.load(self.headers.get("Cookie", ""))
        except CookieError:
            pass
        if "my_plan" in cookies:
            add(read, "cookie.my_plan", cookies["my_plan"].value)
        if "auth" in cookies:
            add(read, "cookie.auth", cookies["auth"].value)
        for name in HEADERS:
            lines = self.headers.get_all(name, [])
            add(read, "header." + name, *(lines[:1] if name == "x-key" else lines))

    def form(self, read, body):
        kind = self.headers.get_content_type()
        if kind == "application/x-www-form-urlencoded":
            text = body.decode("utf-8", "replace")
            try:
                values = parse_qs(text, keep_blank_values=True)
            except ValueError:
                return
            add(read, "form.my_plan", *values.get("my_plan", []))
            if "auth" in values:
                add(read, "form.auth", values["auth"][0])
        elif kind.startswith("multipart/"):
            head = b"Content-Type: " + self.headers["Content-Type"].encode("latin-1", "replace") + b"\r\n\r\n"
            message = BytesParser().parsebytes(head + body)
            if not message.is_multipart():
                return
            auth = []
            for part in message.get_payload():
                name = part.get_param("name", header="content-disposition")
                name = name and collapse_rfc2231_value(name)
                value = part.get_payload(decode=True)
                if name == "my_plan" and value is not None:
                    add(read, "form.my_plan", value.decode("utf-8", "replace"))
                if name == "auth" and value is not None:
                    auth.append(value.decode("utf-8", "replace"))
            if auth:
                add(read, "form.auth", auth[0])


server = ThreadingHTTPServer(("127.0.0.1", 0), Reader)
print("port", server.server_port, flush=True)
server.serve_forever()
