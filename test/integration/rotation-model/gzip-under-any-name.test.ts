import { playKind } from '../../rotation-kinds.ts';

playKind('gzip under any name');
