import { playKind } from '../../rotation-kinds.ts';

playKind('copied and left, moved as a copy');
