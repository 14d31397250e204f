// A server that says what Express reads, with cookie-parser, qs, its own body parsers and busboy.
"use strict";

// The packages lie in the folder named by the first argument, not beside this file.
const { createRequire } = require("node:module");
const { Readable } = require("node:stream");
const from = createRequire(`${process.argv[2]}/package.json`);
const express = from("express");
const cookieParser = from("cookie-parser");
const busboy = from("busboy");

const app = express();
// What most applications set: Express 4 has it by default.
app.set("query parser", "extended");
app.use(cookieParser());

const parsers = {
  json: express.json({ type: () => true, limit: "4mb" }),
  form: express.urlencoded({ extended: true }),
};

function add(read, field, value) {
  const list = (read[field] ??= []);
  if (typeof value === "string" || typeof value === "number") list.push(String(value));
  else if (Array.isArray(value)) value.filter((one) => typeof one === "string" || typeof one === "number").forEach((one) => list.push(String(one)));
  else if (value && typeof value === "object") {
    // Indexes above qs's limit make an object of a list.
    for (const [key, one] of Object.entries(value)) if (/^\d+$/.test(key) && typeof one === "string") list.push(one);
  }
}

// A parser consumes its stream: each gets one of its own with the same head.
function parsed(parser, request, body) {
  return new Promise((resolve) => {
    const stream = Readable.from(body.length > 0 ? [body] : []);
    const own = Object.assign(stream, { headers: { ...request.headers }, method: request.method, url: request.url });
    delete own.headers["transfer-encoding"];
    own.headers["content-length"] = String(body.length);
    parser(own, {}, (error) => resolve(error ? undefined : own.body));
  });
}

function parts(request, body, read) {
  return new Promise((resolve) => {
    let parser;
    try {
      parser = busboy({ headers: request.headers });
    } catch {
      return resolve();
    }
    parser.on("field", (name, value) => {
      // multer's append-field makes lists of `name[]`.
      if (name === "my_plan" || name === "my_plan[]" || name === "my_plan[0]") add(read, "form.my_plan", value);
      if (name === "auth" && !read["form.auth"]) add(read, "form.auth", value);
    });
    parser.on("file", (_name, stream) => stream.resume());
    parser.on("error", () => resolve());
    parser.on("close", () => resolve());
    parser.end(body);
  });
}

// Routes compare without regard to case unless told otherwise: what is mounted there counts as that path.
app.use("/admin", (request, _response, next) => {
  request.mounts = ["/admin"];
  next();
});

function decodedPath(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

app.use(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const body = Buffer.concat(pieces);
  const read = {};
  add(read, "size", body.length);
  add(read, "path", [request.path, decodedPath(request.path)]);
  add(read, "mount", request.mounts ?? []);
  add(read, "host", request.hostname ?? "");
  add(read, "query.my_plan", request.query.my_plan);
  add(read, "query.auth", request.query.auth);
  add(read, "cookie.my_plan", request.cookies.my_plan);
  add(read, "cookie.auth", request.cookies.auth);
  for (const name of ["x-role", "x-user", "x-scope", "x-key"]) add(read, `header.${name}`, [request.get(name), request.trailers[name]].filter((value) => value !== undefined));
  const json = await parsed(parsers.json, request, body);
  if (json && typeof json === "object") {
    // Arithmetic takes strings and lists of one number for numbers.
    if (json.total !== null && typeof json.total !== "boolean") add(read, "json.total", Number(json.total));
    add(read, "json.status", typeof json.status === "string" ? json.status : undefined);
  }
  const form = await parsed(parsers.form, request, body);
  if (form && typeof form === "object") {
    add(read, "form.my_plan", form.my_plan);
    add(read, "form.auth", form.auth);
  }
  await parts(request, body, read);
  const text = JSON.stringify(read);
  response.set({ "Content-Type": "application/json", "X-Reader": "node" });
  response.set("Content-Length", String(Buffer.byteLength(text)));
  response.end(text);
});
// What Express cannot read it refuses.
app.use((error, _request, response, _next) => response.status(400).end("refused\n"));

const server = app.listen(0, "127.0.0.1", () => console.log("port", server.address().port));
server.keepAliveTimeout = 60000;
