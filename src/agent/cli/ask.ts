import { get, type IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { connectTrusted, type Trust } from './trust.ts';

const timeoutMs = 5000;
const maxAnswerBytes = 16 << 20;

/** Where a running agent is asked, and how. */
export interface Target extends Trust {
  url: string;
  /** Credentials as they stand in the header; those of the URL otherwise. */
  authorization?: string | undefined;
}

async function jsonOf(response: IncomingMessage): Promise<unknown> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response) {
    text += piece as string;
    if (text.length > maxAnswerBytes) throw new Error(`answer over ${maxAnswerBytes} bytes`);
  }
  if (response.statusCode === 401) throw new Error('HTTP 401, the listener asks for credentials');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`HTTP ${response.statusCode} is no JSON`, { cause });
  }
}

/** The answer to a GET, over `socket` if TLS is spoken already. */
function requested(
  url: URL,
  authorization: string | undefined,
  socket: TLSSocket | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  // Node takes a ready connection only where there is no agent at all.
  const through = socket ? { createConnection: () => socket } : { agent: false as const };
  const plain = new URL(url);
  plain.protocol = 'http:';
  return new Promise((resolve, reject) => {
    const headers = { host: url.host, ...(authorization !== undefined && { authorization }) };
    get(plain, { signal, headers, ...through }, resolve).on('error', reject);
  });
}

/** GETs a JSON answer of a running agent, whatever its status but 401. Rejects on none within 5 s or one that is no JSON. */
export async function ask(target: Target): Promise<unknown> {
  const url = new URL(target.url);
  const ended = AbortSignal.timeout(timeoutMs);
  let socket: TLSSocket | undefined;
  try {
    if (url.protocol === 'https:') socket = await connectTrusted(url, target, ended);
    const response = await requested(url, target.authorization, socket, ended);
    return await jsonOf(response);
  } catch (error) {
    if (ended.aborted) throw new Error(`no answer within ${timeoutMs / 1000} s`, { cause: error });
    throw error;
  } finally {
    socket?.destroy();
  }
}

/** A URL for messages: credentials left out. */
export function shownUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  url.username = '';
  url.password = '';
  return url.href;
}
