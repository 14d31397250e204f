// A WebSocket client over HTTP/2 (RFC 8441) by Node's http2, with frames by hand (RFC 6455 section 5). Arguments:
// HOST:PORT, and for TLS the file of the authority.
"use strict";

const assert = require("node:assert");
const crypto = require("node:crypto");
const fs = require("node:fs");
const http2 = require("node:http2");
const { once } = require("node:events");
const { run } = require("./cases.js");

const [, , address, authority] = process.argv;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const AUTHORITY = { ":authority": "shop.example" };

let session;

async function begin() {
  const tls = authority ? { ca: fs.readFileSync(authority), servername: "shop.example" } : {};
  session = http2.connect(`${authority ? "https" : "http"}://${address}`, tls);
  const [settings] = await once(session, "remoteSettings");
  assert.strictEqual(settings.enableConnectProtocol, true);
  if (authority) {
    assert.strictEqual(session.alpnProtocol, "h2");
  }
}

// A WebSocket on a stream of its own.
class Tunnel {
  static async open({ path = "/echo", ...fields } = {}) {
    const tunnel = new Tunnel();
    const asked = { ...AUTHORITY, ":method": "CONNECT", ":protocol": "websocket", ":path": path };
    asked[":scheme"] = authority ? "https" : "http";
    tunnel.stream = session.request({ ...asked, "sec-websocket-version": "13", ...fields }, { endStream: false });
    tunnel.came = Buffer.alloc(0);
    tunnel.ended = false;
    [tunnel.head] = await once(tunnel.stream, "response");
    return tunnel;
  }

  send(opcode, payload, isLast = true) {
    const bytes = Buffer.from(payload);
    const long = bytes.length > 65_535 ? 127 : bytes.length > 125 ? 126 : 0;
    const head = Buffer.alloc(2 + (long === 127 ? 8 : long === 126 ? 2 : 0));
    head[0] = (isLast ? 0x80 : 0) | opcode;
    head[1] = 0x80 | (long || bytes.length);
    if (long === 126) head.writeUInt16BE(bytes.length, 2);
    if (long === 127) head.writeBigUInt64BE(BigInt(bytes.length), 2);
    const mask = crypto.randomBytes(4);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] ^= mask[at % 4];
    this.stream.write(Buffer.concat([head, mask, bytes]));
  }

  // So many bytes; fails where the stream ends before.
  async take(count) {
    const pieces = [this.came];
    let length = this.came.length;
    while (length < count) {
      const piece = this.stream.read();
      if (piece) {
        pieces.push(piece);
        length += piece.length;
      } else {
        assert.ok(!this.stream.readableEnded && !this.stream.destroyed, "the stream ended");
        await Promise.race([once(this.stream, "readable"), once(this.stream, "end")]);
      }
    }
    const all = Buffer.concat(pieces);
    this.came = all.subarray(count);
    return all.subarray(0, count);
  }

  async frame() {
    const [first, second] = await this.take(2);
    assert.strictEqual(second & 0x80, 0, "a server masks nothing");
    let length = second;
    if (second === 126) length = (await this.take(2)).readUInt16BE();
    if (second === 127) length = Number((await this.take(8)).readBigUInt64BE());
    return { isLast: (first & 0x80) !== 0, opcode: first & 0xf, payload: await this.take(length) };
  }

  // The next message, in however many frames; pings are answered.
  async next() {
    let message;
    for (;;) {
      const { isLast, opcode, payload } = await this.frame();
      if (opcode === PING) {
        this.send(PONG, payload);
      } else if (opcode >= CLOSE) {
        return { opcode, payload };
      } else {
        message = { opcode: message?.opcode ?? opcode, pieces: [...(message?.pieces ?? []), payload] };
        if (isLast) return { opcode: message.opcode, payload: Buffer.concat(message.pieces) };
      }
    }
  }

  async ask(question) {
    this.send(typeof question === "string" ? TEXT : BINARY, question);
    const { opcode, payload } = await this.next();
    return opcode === TEXT ? payload.toString() : payload;
  }

  // Says a Close frame, hears the other one, and then the end.
  async close(code = 1000, reason = "") {
    this.send(CLOSE, closing(code, reason));
    const { opcode, payload } = await this.next();
    assert.strictEqual(opcode, CLOSE);
    await this.end();
    return [payload.readUInt16BE(), payload.subarray(2).toString()];
  }

  async end() {
    if (!this.stream.closed) {
      const closed = once(this.stream, "close");
      this.stream.resume();
      this.stream.end();
      await closed;
    }
    // NO_ERROR: the server ended, and nothing was reset.
    assert.strictEqual(this.stream.rstCode, 0);
  }
}

function closing(code, reason) {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(code);
  return Buffer.concat([bytes, Buffer.from(reason)]);
}

async function asked(question, fields) {
  const tunnel = await Tunnel.open(fields);
  assert.strictEqual(tunnel.head[":status"], 200);
  const came = await tunnel.ask(question);
  await tunnel.close();
  return came;
}

const CASES = {
  async text() {
    assert.strictEqual(await asked("gr\u00fc\u00df dich \u{1f600}"), "gr\u00fc\u00df dich \u{1f600}");
    assert.strictEqual(await asked(""), "");
  },
  async binary() {
    const bytes = Buffer.from([...Array(256).keys()]);
    assert.deepStrictEqual(await asked(bytes), bytes);
  },
  async each_size_of_a_frame() {
    const tunnel = await Tunnel.open();
    for (const size of [1, 125, 126, 127, 65_535, 65_536, 65_537]) {
      assert.strictEqual((await tunnel.ask(Buffer.alloc(size, 7))).length, size);
    }
    await tunnel.close();
  },
  async a_mebibyte() {
    const bytes = crypto.randomBytes(1024 * 1024);
    assert.ok(bytes.equals(await asked(bytes)));
  },
  async fragmented() {
    const tunnel = await Tunnel.open();
    tunnel.send(TEXT, "one ", false);
    tunnel.send(0, "two ", false);
    tunnel.send(0, "three");
    assert.strictEqual((await tunnel.next()).payload.toString(), "one two three");
    assert.strictEqual(await tunnel.ask("fragments"), "one two three");
    await tunnel.close();
  },
  async ping() {
    const tunnel = await Tunnel.open();
    tunnel.send(PING, "from the client");
    const { opcode, payload } = await tunnel.next();
    assert.deepStrictEqual([opcode, payload.toString()], [PONG, "from the client"]);
    assert.strictEqual(await tunnel.ask("ping"), "pong came");
    await tunnel.close();
  },
  async subprotocols() {
    const fields = { "sec-websocket-protocol": "unknown, chat" };
    const tunnel = await Tunnel.open(fields);
    assert.strictEqual(tunnel.head["sec-websocket-protocol"], "chat");
    assert.strictEqual(tunnel.head["sec-websocket-accept"], undefined);
    assert.strictEqual(await tunnel.ask("subprotocol"), "chat");
    await tunnel.close();
  },
  async path_and_query() {
    assert.strictEqual(await asked("path", { path: "/a/b?c=d" }), "/a/b?c=d");
  },
  async close_by_the_client() {
    const tunnel = await Tunnel.open();
    const [code] = await tunnel.close(4000, "enough");
    assert.strictEqual(code, 4000);
  },
  async close_by_the_server() {
    for (const [sent, why] of [[1000, "good bye"], [4999, "gr\u00fc\u00df"]]) {
      const tunnel = await Tunnel.open();
      tunnel.send(TEXT, `close ${sent} ${why}`);
      const { opcode, payload } = await tunnel.next();
      assert.deepStrictEqual([opcode, payload.readUInt16BE(), payload.subarray(2).toString()], [CLOSE, sent, why]);
      tunnel.send(CLOSE, payload);
      await tunnel.end();
    }
  },
  async eighty_at_once() {
    const numbers = Array.from({ length: 80 }, (_, number) => String(number));
    assert.deepStrictEqual(await Promise.all(numbers.map((number) => asked(number))), numbers);
  },
  async a_request_beside() {
    const tunnel = await Tunnel.open();
    const request = session.request({ ...AUTHORITY, ":path": "/" });
    const [head] = await once(request, "response");
    request.resume();
    // A server of WebSocket alone says so.
    assert.strictEqual(head[":status"], 426);
    await once(request, "close");
    assert.strictEqual(await tunnel.ask("still here"), "still here");
    await tunnel.close();
  },
  async no_websocket() {
    const tunnel = await Tunnel.open({ "sec-websocket-version": "99" });
    assert.strictEqual(tunnel.head[":status"], 426);
    assert.strictEqual(tunnel.head["sec-websocket-version"], "13");
    await tunnel.end();
  },
};

begin().then(() => run(CASES));
