// The thread of the store: PGlite, which keeps its thread busy for seconds while it starts, behind a port of loopback.
// Plain JavaScript, as Node runs it from the source, too.
import { existsSync, readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { preparedFile } from './prepared.mjs';

/** The agent, the service's schema tool, and a person who looks. */
const maxConnections = 10;

const { port, setUp } = workerData;
const prepared = preparedFile();
const db = await PGlite.create(
  existsSync(prepared) ? { loadDataDir: new Blob([readFileSync(prepared)]) } : {},
);
await db.exec(setUp);
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port, maxConnections });

const orders = { open: () => server.start(), close: () => server.stop() };
let done = Promise.resolve();
parentPort.on('message', (order) => {
  done = done.then(orders[order]).then(() => parentPort.postMessage(order));
});
parentPort.postMessage('ready');
