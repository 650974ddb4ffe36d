/*
 * killswitchd: one market, one exchange, the corner of delete, renewal, stray, restart and handoff.
 *
 * Abstracts src/core/{belief,goal,next,dispatch,settle,commands}.ts: what is believed (nb = slack, stray, strayDel), when a
 * renewal and a delete may be written, what a stop says it left. Time is in ticks; every message is carried out within L
 * ticks or never, answered or not; an attempt may be given up at any moment (unknown outcome); the bot may die; the daemon
 * may crash and be started again, be paused and armed, and be stopped with `delete` or `handoff`.
 *
 *   -DWINDOW      nonce window (any order); without it nonces rise and an accepted one fences all earlier ones
 *   -DLIVES=n     lives of the daemon (crash or stop, then start); default 1
 *   -DPAUSE       an operator pauses (deletes) and arms again
 *   -DTWO         a second daemon with its own key renews as well, after a handoff of the first (never deletes)
 *   -DWRITES=n    bound: so many requests are written in all; default 5
 * Planted bugs, which the model must find:
 *   -DBUG_BESIDE  a delete does not wait for renewals in flight
 *   -DBUG_STRAY   a delete, and what a stop says, do not reckon with strays
 *   -DBUG_GATE    evidence is checked when a renewal is prepared, and not when it is written
 *   -DBUG_STRAYDEL a confirmation in a window does not reckon with a delete that may still land
 *   -DBUG_ANSWER  it reckons only with deletes that may still land when the answer comes, not when it was written
 *   -DBUG_FORGET  a new life does not reckon with requests of the life before it
 *   -DBUG_DEAD    a stop deletes without evidence that is newer than itself
 */
#ifndef LIVES
#define LIVES 1
#endif
#ifndef WRITES
#define WRITES 5
#endif
#ifndef T
#define T 3
#endif
#define L 2
#define H 1
#define M 3
#define BOUND (H + L + T)

#define FREE 0
#define WAY 1      /* on its way to the exchange */
#define OK 2       /* carried out, the answer is on its way back */
#define STALE 3    /* refused for its nonce, the answer is on its way back */
#define RENEW 0
#define DELETE 1

#define RUN 0
#define HELD 1     /* paused: the timer is to be deleted, and armed again later */
#define STOP 2     /* SIGTERM, policy delete */
#define HAND 3     /* SIGTERM, policy handoff: one last renewal */
#define DONE 4

byte st[M]; bit kind[M]; byte age[M]; byte nonce[M]; byte owner[M]; bit waits[M]; bit late[M];   /* late: a delete of unknown outcome could still land when it was written */

byte timer = 0;            /* at the exchange: ticks left */
byte accepted = 0;         /* at the exchange: the newest nonce of the key */
byte written = 0;          /* nonces given out */

bool up = true; byte life = 1; byte phase = RUN;
byte nb = 0;               /* slack: guaranteed armed for so many ticks */
byte stray = 0;            /* a renewal of unknown outcome may land for so many ticks */
byte strayDel = 0;         /* the same of a delete */
byte lastApplied = 0; byte lastUnresolved = 0;
bool everArmed = false; bool prepared = false;
byte evAge = 0;            /* age of the newest evidence, as the daemon counts it */
byte since = 0;            /* ticks since anybody's evidence allowed a renewal to be written for the last time */
bool botAlive = true;
bool risky = false;        /* a stray could still land when the last delete was written */
bool clean = false;        /* the last stop said that no timer is left */
bool handed = false;       /* the last stop confirmed its last renewal */
bool heard = false;        /* evidence that is newer than the stop */
bool wasDead = false;      /* the bot was dead when the stop began */
#ifdef TWO
byte seen = 0;             /* the second daemon's own count of the evidence */
#endif

#define mine(i) (owner[i] == life && waits[i])
inline count(n, k) { n = 0; for (j : 0 .. M - 1) { if :: (st[j] != FREE && mine(j) && kind[j] == k) -> n++ :: else fi } }
inline put(k, o) {
  j = 0;
  do :: (j < M && st[j] != FREE) -> j++ :: else -> break od;
  if :: (j < M) -> written++; printf("write %d nonce %d by %d\n", k, written, o); st[j] = WAY; kind[j] = k; age[j] = 0; nonce[j] = written; owner[j] = o; waits[j] = 1; late[j] = (o == life && strayDel > 0) :: else fi
}
inline drop(i) { st[i] = FREE; kind[i] = 0; age[i] = 0; nonce[i] = 0; owner[i] = 0; waits[i] = 0; late[i] = 0 }

inline unknown(i) {       /* believeUnknown */
  printf("unknown outcome: nonce %d\n", nonce[i]);
  waits[i] = 0;
#ifndef WINDOW
  if :: (nonce[i] < lastApplied) -> skip
     :: else ->
#else
  if :: true ->
#endif
    if :: (kind[i] == RENEW) -> lastUnresolved = nonce[i]; if :: (L + 1 - age[i] > stray) -> stray = L + 1 - age[i] :: else fi
       :: else -> if :: (L + 1 - age[i] > strayDel) -> strayDel = L + 1 - age[i] :: else fi
    fi
  fi
}

/*
 * PURPOSE (5): a stop deletes nothing of a bot that was dead when it began.
 * BELIEF (1): a timer that is believed armed is armed; also after a handoff, until its last guarantee is over.
 * NOTHING_LEFT (6, 7): a stop that said nothing is left has left nothing, until somebody starts the daemon again.
 * BOUNDED_KILL (3): whatever dies, the timer has fired within H + l + T of the last evidence.
 */
inline check() {
  assert(nb == 0 || timer > 0);
#ifndef TWO
  assert(!clean || up || timer == 0);
#endif
  assert(since <= BOUND || timer == 0)
}

active proctype World() {
  byte i, j, n, d;
  do
  /* the exchange takes a request that is on its way, in any order */
  :: atomic { i = 0; do :: (i < M && st[i] == WAY) -> break :: (i < M) -> i++ :: else -> break od;
       if :: (i < M && st[i] == WAY) ->
#ifndef WINDOW
         if :: (owner[i] != 9 && nonce[i] <= accepted) -> st[i] = STALE
            :: else -> if :: (owner[i] != 9) -> accepted = nonce[i] :: else fi;
#else
         if :: true ->
#endif
              printf("exchange carries out %d nonce %d\n", kind[i], nonce[i]); if :: (kind[i] == RENEW) -> timer = T :: else -> timer = 0 fi; st[i] = OK
         fi
       :: else fi; i = 0; n = 0; d = 0; j = 0; check() }
  /* the answer arrives, or is lost */
  :: atomic { i = 0; do :: (i < M && st[i] >= OK) -> break :: (i < M) -> i++ :: else -> break od;
       if :: (i < M && st[i] >= OK) ->
         if :: (!up || !mine(i) || phase == DONE) -> skip
            :: (up && mine(i) && phase != DONE && st[i] == STALE) -> skip       /* believeNotApplied */
            :: (up && mine(i) && phase != DONE && st[i] == OK && kind[i] == RENEW && nonce[i] < lastApplied) -> skip
            :: (up && mine(i) && phase != DONE && st[i] == OK && kind[i] == RENEW && nonce[i] >= lastApplied) ->
               printf("confirmed: nonce %d\n", nonce[i]); lastApplied = nonce[i]; nb = T - age[i]; everArmed = true;
#ifdef WINDOW
#ifndef BUG_STRAYDEL
#ifndef BUG_ANSWER
               if :: (late[i] || strayDel > 0) -> nb = 0 :: else fi;
#else
               if :: (strayDel > 0) -> nb = 0 :: else fi;
#endif
#endif
#else
               if :: (lastUnresolved < nonce[i]) -> stray = 0 :: else fi; strayDel = 0;
#endif
               if :: (phase == HAND) -> handed = true :: else fi
            :: (up && mine(i) && phase != DONE && st[i] == OK && kind[i] == DELETE) ->
               printf("delete confirmed\n"); nb = 0;
#ifndef WINDOW
               stray = 0;
#endif
               if :: (phase == STOP) -> phase = DONE; up = false;
#ifdef BUG_STRAY
                                        clean = true
#else
#ifdef WINDOW
                                        clean = !risky
#else
                                        clean = true
#endif
#endif
                  :: else fi
         fi; drop(i)
       :: else fi; i = 0; n = 0; d = 0; j = 0; check() }
  :: atomic { i = 0; do :: (i < M && st[i] >= OK) -> break :: (i < M) -> i++ :: else -> break od;
       if :: (i < M && st[i] >= OK) -> if :: (up && mine(i)) -> unknown(i) :: else fi; drop(i) :: else fi; i = 0; n = 0; d = 0; j = 0; check() }
  /* an attempt is given up: nobody waits for its answer any more, and it may still land */
  :: atomic { i = 0; do :: (i < M && st[i] != FREE && up && mine(i)) -> break :: (i < M) -> i++ :: else -> break od;
       if :: (i < M && st[i] != FREE && up && mine(i)) -> unknown(i); if :: (st[i] >= OK) -> drop(i) :: else fi :: else fi; i = 0; n = 0; d = 0; j = 0; check() }
  /* a renewal is written: evidence is checked in this very step */
  :: atomic { (up && (phase == RUN || (phase == HAND && !handed)) && written < WRITES) ->
       count(n, RENEW); count(d, DELETE);
       if :: (d == 0 && n < 2 && (phase != HAND || n == 0)
#ifdef BUG_GATE
              && prepared
#else
              && evAge <= H
#endif
             ) -> put(RENEW, life); prepared = false
          :: else fi; i = 0; n = 0; d = 0; j = 0; check() }
#ifdef BUG_GATE
  :: atomic { (up && phase == RUN && !prepared && evAge <= H) -> prepared = true }
#endif
  /* a delete is written: every renewal has settled, and in a window no stray can land any more */
  :: atomic { (up && (phase == STOP || phase == HELD) && everArmed && written < WRITES) ->
       count(n, RENEW); count(d, DELETE);
       if :: (d == 0
#ifndef BUG_DEAD
              && (phase == HELD || heard)
#endif
#ifndef BUG_BESIDE
              && n == 0
#endif
#if defined(WINDOW) && !defined(BUG_STRAY)
              && (stray == 0 || phase == STOP)   /* a stop may have no time to wait: it goes at once, and says so; one that is repeated later is left out */
#endif
             ) -> assert(phase == HELD || !wasDead); nb = 0; risky = (stray > 0); put(DELETE, life)
          :: else fi; i = 0; n = 0; d = 0; j = 0; check() }
  /* people and the bot */
  :: atomic { (up && phase == RUN && evAge <= H) -> phase = STOP; heard = false; wasDead = !botAlive; printf("SIGTERM, delete\n") }
  :: atomic { (up && phase == RUN && evAge <= H) -> phase = HAND; printf("SIGTERM, handoff\n") }
  :: atomic { (up && phase == HAND) -> phase = DONE; up = false; clean = false }
  :: atomic { (up && phase == STOP) -> phase = DONE; up = false; clean = false }   /* the budget is spent: it is named */
#ifdef PAUSE
  :: atomic { (up && phase == RUN && evAge <= H) -> phase = HELD; printf("pause\n") }
  :: atomic { (up && phase == HELD) -> phase = RUN; printf("arm\n") }
#endif
  :: atomic { botAlive -> botAlive = false }
  :: atomic { botAlive -> evAge = 0; since = 0; heard = true;
#ifdef TWO
       seen = 0
#endif
     }
  :: atomic { (up) -> up = false; phase = DONE; clean = false; nb = 0; handed = false; printf("crash\n") }      /* crash */
  :: atomic { (!up && life < LIVES) -> life++; printf("start, life %d\n", life); up = true; phase = RUN; nb = 0; lastApplied = 0; lastUnresolved = 0;
       everArmed = false; prepared = false; risky = false; evAge = 0; since = 0; clean = false; handed = false;
#ifdef BUG_FORGET
       stray = 0; strayDel = 0
#else
       stray = L + 1; strayDel = L + 1
#endif
     }
#ifdef TWO
  :: atomic { (seen <= H && written < WRITES) -> put(RENEW, 9); waits[j % M] = 0; i = 0; n = 0; d = 0; j = 0; check() }
#endif
  /* time */
  :: atomic { printf("tick\n");
       for (j : 0 .. M - 1) {
         if :: (st[j] == WAY && age[j] >= L) -> if :: (up && mine(j)) -> unknown(j) :: else fi; drop(j)
            :: (st[j] != FREE && age[j] < T && !(st[j] == WAY && age[j] >= L)) -> age[j]++
            :: else fi };
       if :: (timer > 0) -> timer-- :: else fi;
       if :: (nb > 0) -> nb-- :: else fi;
       if :: (stray > 0) -> stray-- :: else fi;
       if :: (strayDel > 0) -> strayDel-- :: else fi;
       if :: (evAge <= H) -> evAge++ :: else fi;
       if :: (since <= BOUND) -> since++ :: else fi;
#ifdef TWO
       if :: (seen <= H) -> seen++ :: else fi;
#endif
       i = 0; n = 0; d = 0; j = 0; check() }
  od
}

