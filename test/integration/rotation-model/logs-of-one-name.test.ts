import { playKind } from '../../rotation-kinds.ts';

playKind('logs of one name');
