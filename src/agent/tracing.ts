import { type Attributes, SpanStatusCode, trace } from '@opentelemetry/api';
import { errorText } from '../core/errors.ts';
import { version } from './version.ts';

/** Runs `work` inside a span; free while no SDK is registered (CONTRIBUTING, Tracing). Rethrows what `work` throws. */
export function spanned<T>(name: string, work: () => Promise<T>, attributes: Attributes = {}): Promise<T> {
  return trace.getTracer('svc-agent', version).startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work();
    } catch (thrown) {
      span.recordException(thrown instanceof Error ? thrown : errorText(thrown));
      span.setStatus({ code: SpanStatusCode.ERROR, message: errorText(thrown) });
      throw thrown;
    } finally {
      span.end();
    }
  });
}
