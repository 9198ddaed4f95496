import type { Panel } from './model.ts';

/** A place on Grafana's grid of 24 columns. */
export interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

const sizes: Readonly<Record<Panel['type'], readonly [width: number, height: number]>> = {
  timeseries: [8, 8],
  stat: [4, 4],
  timeline: [12, 7],
  heatmap: [12, 8],
  table: [24, 9],
};
export const gridWidth = 24;

/** Panels one beside the other from line `y` on, as many as there is room for; and the line below them. */
export function laidOut(panels: readonly Panel[], y: number): { places: readonly Place[]; below: number } {
  const places: Place[] = [];
  let [x, top, below] = [0, y, y];
  for (const { type, width, height } of panels) {
    const [w, h] = [width ?? sizes[type][0], height ?? sizes[type][1]];
    if (x + w > gridWidth) [x, top] = [0, below];
    places.push({ x, y: top, w, h });
    x += w;
    below = Math.max(below, top + h);
  }
  return { places, below };
}
