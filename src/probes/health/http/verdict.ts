import { excerpt } from '../../probe-error.ts';
import { answerIn, faultOf, type HealthAnswer } from '../answer.ts';
import type { HealthFault } from '../failure.ts';
import type { Heard } from '../look.ts';
import type { Reply } from './exchange.ts';

const excerptLength = 80;

const isGood = (status: number): boolean => status >= 200 && status < 300;

/** What is wrong with an answer that does not have the shape of the spec. */
function shapeless({ status, contentType, location, body }: Reply): HealthFault {
  if (location !== undefined && status >= 300 && status < 400) {
    return { reason: 'http_status', msg: `status ${status}: redirects are not followed` };
  }
  const shown = `${excerpt(contentType) || 'no content type'}, ${JSON.stringify(excerpt(body, excerptLength))}`;
  return isGood(status)
    ? { reason: 'invalid_answer', msg: `not a JSON object with ok and msg: ${shown}` }
    : { reason: 'http_status', msg: `status ${status}: ${shown}` };
}

/**
 * What is wrong by an answer, whatever its status. The spec leaves open which status goes with what: `ok: false` is
 * believed with any, but `ok: true` only with a good one, because balancers and orchestrators, for whom the endpoint
 * is, go by the status.
 */
function faultIn(reply: Reply, answer: HealthAnswer | undefined): HealthFault | undefined {
  const { status } = reply;
  if (status === 401 || status === 403) {
    return { reason: 'credentials', msg: `status ${status}: the credentials are missing or refused` };
  }
  if (answer === undefined) return shapeless(reply);
  if (answer.ok && !isGood(status)) {
    return { reason: 'http_status', msg: `status ${status}, though it says ok: ${excerpt(answer.msg)}` };
  }
  return faultOf(answer);
}

export function verdictOf(reply: Reply): Heard {
  const answer = answerIn(reply.body);
  return {
    fault: faultIn(reply, answer),
    msg: excerpt(answer?.msg ?? '') || 'ok',
    details: { protocol: 'http', httpStatus: reply.status },
  };
}
