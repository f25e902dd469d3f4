/** The connections of an HTTP server, so that each can end with the answer that is on its way on it. */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface HttpConnections {
  /** From now on a connection ends with its answer, and one that waits for none ends at once. */
  endWithAnswers(): void;
  cutAll(): void;
}

/**
 * To be called before the server listens. Node's own way takes a connection for idle once its answer is made, and cuts
 * off what the caller has not read by then.
 */
export function watchConnections(server: Server): HttpConnections {
  const answersBySocket = new Map<Socket, Set<ServerResponse>>();
  let isEnding = false;
  server.on("connection", (socket: Socket) => {
    answersBySocket.set(socket, new Set());
    socket.once("close", () => answersBySocket.delete(socket));
  });
  server.prependListener("request", ({ socket }, answer) => {
    const answers = answersBySocket.get(socket);
    answers?.add(answer);
    if (isEnding) answer.shouldKeepAlive = false;
    answer.once("close", () => {
      answers?.delete(answer);
      if (isEnding && answers?.size === 0) socket.destroySoon();
    });
  });
  return {
    endWithAnswers() {
      isEnding = true;
      for (const [socket, answers] of answersBySocket) {
        for (const answer of answers) answer.shouldKeepAlive = false;
        if (answers.size === 0) socket.destroySoon();
      }
    },
    cutAll() {
      for (const socket of answersBySocket.keys()) socket.destroy();
    },
  };
}
