"""A server that says what Flask and Werkzeug read."""

import logging

from flask import Flask, Response, request
from werkzeug.serving import WSGIRequestHandler, make_server

from readings import HEADERS, add, decoded, documents, text_of

app = Flask(__name__)


@app.before_request
def say():
    read = {}
    add(read, "path", request.path)
    add(read, "host", request.host.rsplit(":", 1)[0])
    add(read, "query.my_plan", *request.args.getlist("my_plan"))
    if "auth" in request.args:
        add(read, "query.auth", request.args["auth"])
    add(read, "cookie.my_plan", *request.cookies.getlist("my_plan"))
    if "auth" in request.cookies:
        add(read, "cookie.auth", request.cookies["auth"])
    for name in HEADERS:
        add(read, "header." + name, *request.headers.getlist(name))
    body = request.get_data(cache=True, parse_form_data=False)
    add(read, "size", len(body))
    documents(read, decoded(request.headers.get("Content-Encoding"), body))
    add(read, "form.my_plan", *request.form.getlist("my_plan"))
    if "auth" in request.form:
        add(read, "form.auth", request.form["auth"])
    response = Response(text_of(read), content_type="application/json")
    response.headers["X-Reader"] = "flask"
    return response


class KeepingHandler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"


logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=KeepingHandler)
print("port", server.server_port, flush=True)
server.serve_forever()
