/** Text exposition 0.0.4, or OpenMetrics 1.0. */
export type Format = 'text' | 'openmetrics';

/** What `Content-Type` says about each. */
export const contentTypes: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};
