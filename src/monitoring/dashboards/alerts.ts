import type { AlertRef } from './limits.ts';

/** Alerts by their names, as `limits` take them. */
export const at = (...alerts: string[]): readonly AlertRef[] => alerts.map((alert) => ({ alert }));
