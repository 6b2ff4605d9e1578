/**
 * A stand-in for the server's event socket, in front of a real server that serves everything else. What the page hears
 * comes over a real connection: words that the test runner puts into the page would cost the page more than they should.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

export interface StandIn {
  /** Where the page is to be found. */
  readonly origin: string;
  send(event: object): void;
  close(): Promise<void>;
}

/** `answer` is what the stand-in says to each frame of the page. */
export async function standIn<Asked>(
  origin: string,
  answer: (event: Asked) => Iterable<object>,
): Promise<StandIn> {
  const { host, port, hostname } = new URL(origin);
  const sockets = new Set<Duplex>();
  let events: Duplex | undefined;
  const send = (event: object) => events?.write(frame(JSON.stringify(event)));

  const server = createServer((asked, answered) => {
    const { origin: _own, ...headers } = { ...asked.headers, host };
    const passed = request({ hostname, port, path: asked.url, method: asked.method, headers }, (response) => {
      answered.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answered);
    });
    passed.on("error", () => answered.destroy());
    asked.pipe(passed);
  });
  server.on("upgrade", (asked: IncomingMessage, socket: Duplex) => {
    sockets.add(socket);
    events = socket;
    socket.on("error", () => socket.destroy());
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Protocol: tiller.v1\r\n" +
        `Sec-WebSocket-Accept: ${accepted(asked.headers["sec-websocket-key"] ?? "")}\r\n\r\n`,
    );
    let held = Buffer.alloc(0);
    socket.on("data", (data: Buffer) => {
      held = Buffer.concat([held, data]);
      for (let next = unframe(held); next; next = unframe(held)) {
        held = held.subarray(next.length);
        if (next.text !== undefined) for (const event of answer(JSON.parse(next.text) as Asked)) send(event);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    send,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** RFC 6455 §4.2.2. */
function accepted(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/** A text in one frame. */
function frame(text: string): Buffer {
  const body = Buffer.from(text);
  const head = Buffer.alloc(body.length < 126 ? 2 : body.length < 65_536 ? 4 : 10);
  head[0] = 0x81;
  if (body.length < 126) head[1] = body.length;
  else if (body.length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(body.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(body.length), 2);
  }
  return Buffer.concat([head, body]);
}

/** The first frame of what a browser sent, if all of it is there. A browser's frames are short and masked. */
function unframe(data: Buffer): { length: number; text: string | undefined } | undefined {
  if (data.length < 6) return undefined;
  const short = (data[1] ?? 0) & 0x7f;
  const start = short === 126 ? 4 : 2;
  const size = short === 126 ? data.readUInt16BE(2) : short;
  const length = start + 4 + size;
  if (data.length < length) return undefined;
  const mask = data.subarray(start, start + 4);
  const body = data.subarray(start + 4, length).map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  return { length, text: ((data[0] ?? 0) & 0x0f) === 1 ? Buffer.from(body).toString() : undefined };
}
