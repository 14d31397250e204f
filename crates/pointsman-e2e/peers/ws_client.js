// A WebSocket client that tries what WebSocket can. Arguments: HOST:PORT, and for TLS the file of the authority.
"use strict";

const assert = require("node:assert");
const crypto = require("node:crypto");
const fs = require("node:fs");
const { once } = require("node:events");
const WebSocket = require("ws");
const { run } = require("./cases.js");

const [, , address, authority] = process.argv;

async function connect({ path = "/echo", subprotocols = [], ...more } = {}) {
  const tls = authority ? { ca: fs.readFileSync(authority), servername: "shop.example" } : {};
  const url = `${authority ? "wss" : "ws"}://${address}${path}`;
  const client = new WebSocket(url, subprotocols, { headers: { Host: "shop.example" }, ...tls, ...more });
  await once(client, "open");
  return client;
}

async function next(client) {
  const [data, isBinary] = await once(client, "message");
  return isBinary ? data : data.toString();
}

async function asked(question, options) {
  const client = await connect(options);
  const answer = next(client);
  client.send(question);
  const came = await answer;
  client.close();
  await once(client, "close");
  return came;
}

const CASES = {
  async text() {
    assert.strictEqual(await asked("grüß dich 😀"), "grüß dich 😀");
  },
  async binary() {
    const bytes = Buffer.from([...Array(256).keys()]);
    assert.deepStrictEqual(await asked(bytes), bytes);
  },
  async a_mebibyte() {
    const bytes = crypto.randomBytes(1024 * 1024);
    for (const perMessageDeflate of [false, true]) {
      assert.ok(bytes.equals(await asked(bytes, { perMessageDeflate })));
    }
  },
  async fragmented() {
    const client = await connect({ perMessageDeflate: false });
    const answer = next(client);
    client.send("one ", { fin: false });
    client.send("two ", { fin: false });
    client.send("three", { fin: true });
    assert.strictEqual(await answer, "one two three");
    client.terminate();
  },
  async ping() {
    const client = await connect();
    const pong = once(client, "pong");
    client.ping("from the client");
    assert.strictEqual((await pong)[0].toString(), "from the client");
    const answer = next(client);
    client.send("ping");
    assert.strictEqual(await answer, "pong came");
    client.terminate();
  },
  async deflate() {
    const client = await connect({ perMessageDeflate: { threshold: 0 } });
    assert.match(client.extensions, /permessage-deflate/);
    const answer = next(client);
    client.send("again and again ".repeat(10_000));
    assert.strictEqual(await answer, "again and again ".repeat(10_000));
    client.terminate();
  },
  async subprotocols() {
    assert.strictEqual(await asked("subprotocol", { subprotocols: ["unknown", "chat"] }), "chat");
  },
  async path_and_query() {
    assert.strictEqual(await asked("path", { path: "/a/b?c=d" }), "/a/b?c=d");
  },
  async close_by_the_client() {
    const client = await connect();
    client.close(4000, "enough");
    const [code, reason] = await once(client, "close");
    assert.deepStrictEqual([code, reason.toString()], [4000, "enough"]);
  },
  async close_by_the_server() {
    for (const [sent, why] of [[1000, "good bye"], [4999, "grüß"]]) {
      const client = await connect();
      client.send(`close ${sent} ${why}`);
      const [code, reason] = await once(client, "close");
      assert.deepStrictEqual([code, reason.toString()], [sent, why]);
    }
  },
  async a_hundred_at_once() {
    const numbers = Array.from({ length: 100 }, (_, number) => String(number));
    assert.deepStrictEqual(await Promise.all(numbers.map((number) => asked(number))), numbers);
  },
};

run(CASES);
