// Sends the agent's spans to an OpenTelemetry collector. Install the two packages below beside the agent and start it
// with this file loaded first:
//
//   npm install @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-http
//   OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=svc-agent \
//     node --import ./tracing.mjs dist/main.js run
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
// With the W3C propagator, so that probes and hosted requests carry `traceparent`.
provider.register();

// The agent ends with process.exit, which would drop the spans of the last seconds.
const exit = process.exit;
let isEnding = false;
process.exit = (code) => {
  if (isEnding) return exit(code);
  isEnding = true;
  void provider.shutdown().finally(() => exit(code));
};
