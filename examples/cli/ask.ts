import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';

const withinMs = 5000;

/** Asks a cluster's frontend, at host:port. Throws what the frontend says, or why it cannot be asked. */
export async function askFrontend<Answer>(address: string, path: string, body: object): Promise<Answer> {
  const session = connect(`http://${address}`);
  try {
    return await new Promise((resolve, reject) => {
      session.once('error', reject);
      const stream = session.request({ ':method': 'POST', ':path': path });
      // What is wrong with the session is wrong with the stream, too, but the session says it better.
      stream.once('error', (error) => reject(error.cause ?? error));
      stream.setTimeout(withinMs, () => reject(new Error(`${address} has not answered in time`)));
      const closed = () => reject(new Error(`${address} closed the connection without an answer`));
      stream.once('close', closed);
      stream.once('response', (headers) => {
        stream.off('close', closed);
        text(stream)
          .then((answered) => {
            const answer = JSON.parse(answered) as Answer & { message?: string };
            if (headers[':status'] === 200) resolve(answer);
            else reject(new Error(answer.message));
          })
          .catch(reject);
      });
      stream.end(JSON.stringify(body));
    });
  } finally {
    session.destroy();
  }
}
