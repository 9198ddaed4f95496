import { context, propagation, SpanStatusCode, trace } from '@opentelemetry/api';
import { errorText } from '../core/errors.ts';
import type { Tracing } from '../core/ports.ts';
import { version } from './installation.ts';

/**
 * Spans of `@opentelemetry/api`. Without a registered SDK each span is one call that records nothing (CONTRIBUTING, Tracing). The
 * parent of a span is the span in which it begins.
 */
export const tracing: Tracing = {
  span: (name, attributes, work) =>
    trace.getTracer('svc-agent', version).startActiveSpan(name, { attributes }, async (span) => {
      const failed = (message: string) => span.setStatus({ code: SpanStatusCode.ERROR, message });
      try {
        return await work((values, fault) => {
          span.setAttributes(values);
          if (fault !== undefined) failed(fault);
        });
      } catch (thrown) {
        span.recordException(thrown instanceof Error ? thrown : errorText(thrown));
        failed(errorText(thrown));
        throw thrown;
      } finally {
        span.end();
      }
    }),
  headers() {
    const carrier: Record<string, string> = {};
    propagation.inject(context.active(), carrier);
    return carrier;
  },
};
