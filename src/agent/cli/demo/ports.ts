import { type AddressInfo, createServer } from 'node:net';

function tryPort(port: number): Promise<number | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const { port: got } = server.address() as AddressInfo;
      server.close(() => resolve(got));
    });
  });
}

/** The wanted port of loopback if it is free, else any free one; somebody may still be quicker to take it. */
export async function freePort(wanted: number): Promise<number> {
  return (await tryPort(wanted)) ?? (await tryPort(0)) ?? wanted;
}
