// The same as ws_server.py, by Node's ws.
"use strict";

const { WebSocketServer } = require("ws");

const KNOWN = ["chat.v2", "chat"];

const server = new WebSocketServer({
  host: "127.0.0.1",
  port: 0,
  maxPayload: 4 * 1024 * 1024,
  perMessageDeflate: true,
  handleProtocols: (offered) => KNOWN.find((name) => offered.has(name)) ?? false,
});

server.on("listening", () => console.log("port", server.address().port));

server.on("connection", (client, request) => {
  // A message that is too large ends the connection, and is an error here.
  client.on("error", () => {});
  client.on("message", (data, isBinary) => {
    const text = isBinary ? "" : data.toString();
    const [word, code, ...reason] = text.split(" ");
    if (word === "close" && code) {
      client.close(Number(code), reason.join(" "));
    } else if (text === "fragments") {
      client.send("one ", { fin: false });
      client.send("two ", { fin: false });
      client.send("three", { fin: true });
    } else if (text === "ping") {
      client.once("pong", () => client.send("pong came"));
      client.ping("from the server");
    } else if (text === "path") {
      client.send(request.url);
    } else if (text === "subprotocol") {
      client.send(client.protocol || "none");
    } else {
      client.send(data, { binary: isBinary });
    }
  });
});
