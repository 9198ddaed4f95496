/** `pullmetrics` (spec, Metrics configuration), defaults filled in. */
export interface PullOptions {
  /** host:port; port 0 asks for any free one. */
  listenAddress: string;
  timerType: 'histogram' | 'summary';
  /** Upper bounds in seconds for distributions the agent builds itself. */
  defaultHistogramBuckets: readonly number[];
  /** Whether OpenMetrics 1.0 is negotiated; text 0.0.4 otherwise. */
  openMetrics: boolean;
}
