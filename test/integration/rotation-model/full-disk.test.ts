import { playKind } from '../../rotation-kinds.ts';

playKind('on a full disk');
