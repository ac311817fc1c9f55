/* SPDX-License-Identifier: MIT */
/* adoption: ownership.pml with a lease per worker, answers to commits that are lost, jobs that are
 * given back, and adoptions that take time, for safety alone: the protocol of docs/ownership.md for
 * one job and two workers of different names, each on a host of its own with its runner, next to one
 * fleet watch, relay and reconciler.
 *
 * Time: one tick is one beat interval. In each, the hearts beat and ping, then the watch looks, then
 * time passes: of all orders the one that leaves the least between the end of a grant and a
 * declaration. A slot that is not in trouble does what it can before any of these; one that is
 * stopped or cut off takes any time for any step. An adoption takes up to ADOPTION ticks (a row may
 * be locked), also when nothing is in trouble.
 *
 * Faults: FAULTS of them, at any moment. A worker is killed (it restarts at any time, or never),
 * stopped, or cut off from the database, the broker or both: then every call may fail or succeed,
 * the answer to a commit may be lost whether it was made or not, and the broker may drop the
 * connection at any time. Database or broker are away for everybody. The relay publishes twice. The
 * reconciler raises the epoch too early. They last for any time.
 *
 * Leases: the watch has the short one. With ROLLS, worker 0 has either, and so often it is restarted
 * with the other one; that is no fault. Without, all have the short one.
 *
 * Assumed: runners and job processes are not stopped by themselves, and clocks of all hosts run at
 * the same speed to within the quarter of a lease that the grant leaves over.
 *
 * Never: two runs at once, two terminal states, a run of a stale epoch, a job without a home, a run
 * that ends for want of a ping while its worker is there and adopts it.
 *
 * HOSTS_ONLY: workers are killed and stopped, networks and servers are well. The space is so small
 * that an adoption may take longer than a lease.
 *
 * Mutations, each of which must be found out: TRUST_LOST_ANSWER, GIVE_BACK_RUNNING,
 * ADOPT_BEFORE_PING; with ROLLS LEASE_OWN_ONLY; with ADOPTION 5 FORMER_UNBEATEN. */

#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef ROLLS
#define ROLLS 0
#endif
/* Ticks; a grant is three quarters of a lease. */
#define SHORT_LEASE 4
#define SHORT_GRANT 3
#define LONG_LEASE 8
#define LONG_GRANT 6
#ifndef ADOPTION
#define ADOPTION 3
#endif
#define NAMES 2
#define IDS 3 /* incarnations of one name that may be told apart */
#ifndef EPOCHS
#define EPOCHS 3
#endif

#define ID(w, k) (1 + (w)*IDS + (k))
#define NAME(id) (((id)-1) / IDS)

mtype = {DOWN, BOOT, FIRST, SORT, ADOPT, REPLACE, UP} /* a worker's start */
mtype = {IDLE, GOT, TAKE, COPIED, OWN, MEET, RUN, TELL} /* a slot */

/* The database. */
bool done;    /* the job's state: active or terminal */
byte owner;   /* an incarnation, 0: none */
byte fence;
byte epoch;
byte outbox; /* the epoch of the message that it promises, 0: no row */
bool live[1 + NAMES * IDS];  /* workers.state; else stopped, replaced or dead */
bool fresh[1 + NAMES * IDS]; /* the beat changed since the watch looked */
bool longer[1 + NAMES * IDS]; /* workers.lease_ms: the long lease */

/* The broker. */
byte ready[1 + EPOCHS];    /* messages of each epoch on the queue, two at most are told apart */
bool deferred[1 + EPOCHS]; /* in the defer queue, back at the next tick */
bool held[NAMES];          /* the connection, and with it the exclusive queue, of ... */
byte held_by[NAMES];       /* ... this incarnation */
byte unacked[NAMES];       /* epoch of what it has got, 0: nothing */

/* The runners: fences of the process that lives and of the exit record. */
byte process[NAMES];
byte record[NAMES];
byte grant[NAMES];

/* The workers, one slot each. */
mtype phase[NAMES];
mtype slot[NAMES];
byte me[NAMES];      /* the incarnation */
bool linked[NAMES];  /* it believes that its broker connection stands */
bool beaten[NAMES];  /* a beat was committed since that was opened */
byte silence[NAMES]; /* ticks since the latest witness */
byte message[NAMES]; /* epoch of the delivery in the slot, 0: none */
byte seen[NAMES];    /* the fence as read */
byte mine[NAMES];    /* the fence as claimed */
bool fenced[NAMES];
bool keeps[1 + NAMES * IDS]; /* a former incarnation, whose row is beaten as well */
byte adopting[NAMES];        /* ticks */
byte stray[NAMES];           /* looks that saw the job as ours in the row, and in no slot */

/* The watch. */
bool silent[1 + NAMES * IDS];
byte silent_for[1 + NAMES * IDS];
bool verdict[1 + NAMES * IDS];

/* The environment. */
byte faults = FAULTS;
byte rolls = ROLLS;
bool set_longer; /* the setting of worker 0 */
bool stopped[NAMES];
bool no_db[NAMES];
bool no_mq[NAMES];
bool db_away;
bool mq_away;
byte length; /* ticks that the process has lived in quiet times */

byte turn; /* whose it is in this tick */

#define ALIVE(w) (phase[w] != DOWN && !stopped[w])
#define TROUBLE(w) (db_away || mq_away || no_db[w] || no_mq[w])
#define CALM                                                                                       \
    (!db_away && !mq_away && !no_db[0] && !no_db[1] && !no_mq[0] && !no_mq[1] && !stopped[0] &&    \
     !stopped[1] && (phase[0] != DOWN || phase[1] != DOWN))
#define SOME_READY (ready[1] > 0 || ready[2] > 0 || ready[3] > 0)
#define ON_ITS_WAY(e)                                                                              \
    (outbox == e || ready[e] > 0 || deferred[e] || unacked[0] == e || unacked[1] == e)

#define LEASE(id) (longer[id] -> LONG_LEASE : SHORT_LEASE)
#define GRANT(w) (longer[me[w]] -> LONG_GRANT : SHORT_GRANT)
#define KEEPS(w) (keeps[ID(w, 0)] || keeps[ID(w, 1)] || keeps[ID(w, 2)])
#define SLOT_HOLDS(w)                                                                              \
    (slot[w] == TAKE || slot[w] == OWN || slot[w] == MEET || slot[w] == RUN || slot[w] == TELL)

#ifdef NO_FENCE
#define HOLDS(w) (true)
#else
#define HOLDS(w) (owner == me[w] && fence == mine[w])
#endif

inline put(e)
{
    if
    :: ready[e] < 2 -> ready[e]++
    :: else
    fi
}

inline broker_drops(w)
{
    held[w] = false;
    held_by[w] = 0;
    if
    :: unacked[w] -> put(unacked[w])
    :: else
    fi;
    unacked[w] = 0
}

inline acknowledge(w)
{
    if
    :: held[w] && linked[w] && message[w] -> unacked[w] = 0
    :: else
    fi;
    message[w] = 0
}

inline forget(w)
{
    slot[w] = IDLE;
    message[w] = 0;
    mine[w] = 0;
    seen[w] = 0;
    linked[w] = false;
    beaten[w] = false;
    fenced[w] = false;
    me[w] = 0;
    keeps[ID(w, 0)] = false;
    keeps[ID(w, 1)] = false;
    keeps[ID(w, 2)] = false;
    adopting[w] = 0;
    stray[w] = 0;
    silence[w] = SHORT_GRANT
}

/* Both incarnations may be asked for: the lowest number of this name that nothing refers to. */
inline new_incarnation(w)
{
    if
    :: owner != ID(w, 0) && held_by[w] != ID(w, 0) -> me[w] = ID(w, 0)
    :: else ->
        if
        :: owner != ID(w, 1) && held_by[w] != ID(w, 1) -> me[w] = ID(w, 1)
        :: else -> me[w] = ID(w, 2)
        fi
    fi;
    live[me[w]] = true;
    fresh[me[w]] = true;
    longer[me[w]] = (w == 0 && set_longer);
    silent[me[w]] = false;
    silent_for[me[w]] = 0;
    verdict[me[w]] = false
}

/* The row of a former incarnation is the one that others look at before they take its run: it is
 * beaten, and waited for as long as we grant. */
inline keep_one(w, id)
{
#ifndef FORMER_UNBEATEN
    if
    :: keeps[id] && live[id] ->
        fresh[id] = true;
        longer[id] = (longer[id] || longer[me[w]])
    :: else -> keeps[id] = false
    fi
#else
    skip
#endif
}

inline keep_formers(w)
{
    keep_one(w, ID(w, 0));
    keep_one(w, ID(w, 1));
    keep_one(w, ID(w, 2))
}

inline find_formers(w)
{
    if
    :: process[w] || record[w] ->
        keeps[ID(w, 0)] = (live[ID(w, 0)] && me[w] != ID(w, 0));
        keeps[ID(w, 1)] = (live[ID(w, 1)] && me[w] != ID(w, 1));
        keeps[ID(w, 2)] = (live[ID(w, 2)] && me[w] != ID(w, 2))
    :: else
    fi
}

inline release_formers(w)
{
    keeps[ID(w, 0)] = false;
    keeps[ID(w, 1)] = false;
    keeps[ID(w, 2)] = false;
    adopting[w] = 0
}

inline replace_one(w, id)
{
    if
    :: id != me[w] && live[id] -> live[id] = false
    :: else
    fi
}

inline replace_formers(w)
{
    replace_one(w, ID(w, 0));
    replace_one(w, ID(w, 1));
    replace_one(w, ID(w, 2))
}

/* Fences are only compared for equality: a number that nobody remembers stands for a new one. */
inline new_fence(w)
{
    mine[w] = 1;
    do
    :: fence == mine[w] || seen[0] == mine[w] || seen[1] == mine[w] || mine[1 - w] == mine[w] ||
            process[0] == mine[w] || process[1] == mine[w] || record[0] == mine[w] ||
            record[1] == mine[w] ->
        mine[w]++
    :: else -> break
    od
}

inline claim(w)
{
    assert(!done);
    owner = me[w];
    new_fence(w);
    fence = mine[w]
}

inline launch(w)
{
    assert(process[0] == 0 && process[1] == 0); /* never two runs at once */
    assert(!done);
    process[w] = mine[w];
    record[w] = 0;
    length = 0
}

#define BEATS(w) (ALIVE(w) && phase[w] != BOOT && phase[w] != FIRST && !fenced[w])

#ifdef ADOPT_BEFORE_PING
#define PINGS(w) (phase[w] == UP)
#else
#define PINGS(w) (phase[w] == UP || phase[w] == REPLACE || phase[w] == ADOPT)
#endif

inline ping(w)
{
    if
    :: PINGS(w) -> grant[w] = GRANT(w) - silence[w]
    :: else
    fi;
#ifndef NO_SELF_FENCE
    if
    :: silence[w] == GRANT(w) && slot[w] != IDLE -> fenced[w] = true
    :: else
    fi;
#endif
    turn++
}

inline beat(w)
{
    if
    :: live[me[w]] ->
        fresh[me[w]] = true;
        silence[w] = 0;
        beaten[w] = (linked[w] && !KEEPS(w)); /* the broker vouches for our own row only */
        keep_formers(w)
    :: else -> fenced[w] = true
    fi;
    ping(w)
}

/* Ours by the row, and in no slot at two looks: a claim whose answer was lost, and its message. */
inline look_for_strays(w)
{
    if
#ifdef GIVE_BACK_RUNNING
    :: phase[w] == UP && owner == me[w] && !done && epoch < EPOCHS ->
#elif defined(NO_GIVE_BACK)
    :: false ->
#else
    :: phase[w] == UP && owner == me[w] && !done && epoch < EPOCHS && !SLOT_HOLDS(w) ->
#endif
        stray[w]++;
        if
        :: stray[w] == 2 ->
            stray[w] = 0;
            owner = 0;
            epoch++;
            outbox = epoch
        :: else
        fi
    :: else -> stray[w] = 0
    fi
}

#ifdef NO_BEATEN
#define WITNESS(w) (linked[w] && held[w])
#else
#define WITNESS(w) (linked[w] && held[w] && beaten[w])
#endif

/* The beat, what was heard from the broker, and the ping that carries both to the runner. */
inline heart(w)
{
    if
    :: !BEATS(w) -> turn++
    :: BEATS(w) && !db_away -> look_for_strays(w); beat(w)
    :: BEATS(w) && (db_away || no_db[w]) && WITNESS(w) -> silence[w] = 0; ping(w)
    :: BEATS(w) && (db_away || no_db[w]) && (no_mq[w] || !WITNESS(w)) -> ping(w)
    fi
}

/* By this fence: so says the history. */
#define ENDED(w) (done && mine[w] && fence == mine[w])

#ifdef NO_EPOCH
#define CLAIMABLE(w) (fence == seen[w] && !done)
#else
#define CLAIMABLE(w) (fence == seen[w] && !done && epoch == message[w])
#endif

#ifdef FORMER_UNBEATEN
#define KEPT(id) (true)
#else
#define KEPT(id) (keeps[id])
#endif

#define ADOPTABLE(w)                                                                               \
    ((process[w] || record[w]) && !done && owner &&                                                \
     (fence == process[w] || fence == record[w] || (NAME(owner) == w && live[owner])))

proctype worker(byte w)
{
    do
    /* ---- start: list and register, join the broker and beat, adopt, replace, receive */
    :: d_step { phase[w] == DOWN && !stopped[w] -> phase[w] = BOOT }
    :: d_step {
        ALIVE(w) && phase[w] == BOOT && !db_away ->
        new_incarnation(w);
        phase[w] = FIRST
    }
    :: d_step {
        ALIVE(w) && phase[w] == FIRST && !fenced[w] && !db_away && (linked[w] || TROUBLE(w)) ->
        if
        :: live[me[w]] ->
            fresh[me[w]] = true;
            silence[w] = 0;
            find_formers(w);
            beaten[w] = (linked[w] && !KEEPS(w));
            keep_formers(w);
#ifdef REPLACE_FIRST
            replace_formers(w);
#endif
            phase[w] = SORT
        :: else -> fenced[w] = true
        fi
    }
    :: d_step { /* ends the runs of which no former row is kept, and lets the others live */
        ALIVE(w) && phase[w] == SORT && !fenced[w] && !db_away ->
#ifndef ADOPT_BEFORE_PING
        if
        :: process[w] && (done || !owner || !KEPT(owner)) -> process[w] = 0
        :: else
        fi;
        grant[w] = GRANT(w) - silence[w];
#endif
        phase[w] = ADOPT
    }
    :: d_step {
        ALIVE(w) && phase[w] == ADOPT && !fenced[w] && !db_away ->
        if
        :: ADOPTABLE(w) ->
            claim(w);
            slot[w] = MEET
        :: else ->
            process[w] = 0;
            record[w] = 0
        fi;
        release_formers(w);
        phase[w] = REPLACE
    }
    :: d_step { /* it is made, and its answer lost: it is tried again */
        ALIVE(w) && phase[w] == ADOPT && !fenced[w] && no_db[w] && !db_away && ADOPTABLE(w) &&
            owner != me[w] ->
        claim(w)
    }
    :: d_step {
        ALIVE(w) && phase[w] == REPLACE && !fenced[w] && !db_away ->
        grant[w] = GRANT(w) - silence[w];
        replace_formers(w);
        phase[w] = UP
    }
    /* ---- the connection */
    :: d_step {
        ALIVE(w) && phase[w] != BOOT && !fenced[w] && !linked[w] && !held[w] && !mq_away ->
        linked[w] = true;
        held[w] = true;
        held_by[w] = me[w];
        beaten[w] = false
    }
    :: d_step {
        ALIVE(w) && linked[w] && !held[w] ->
        linked[w] = false;
        beaten[w] = false;
        message[w] = 0;
        if
        :: slot[w] == GOT || slot[w] == TAKE || slot[w] == COPIED ->
            slot[w] = IDLE;
            seen[w] = 0;
            mine[w] = 0
        :: else
        fi
    }
    /* ---- fenced: end the processes, drop everything, register anew */
    :: d_step {
        ALIVE(w) && fenced[w] ->
        process[w] = 0;
        record[w] = 0;
        if
        :: held[w] -> broker_drops(w)
        :: else
        fi;
        forget(w);
        phase[w] = BOOT
    }
    /* ---- a message: as in the table */
    :: atomic {
        ALIVE(w) && phase[w] == UP && !fenced[w] && slot[w] == IDLE && linked[w] && held[w] &&
            !mq_away && SOME_READY ->
        if
        :: ready[1] > 0 -> ready[1]--; message[w] = 1
        :: ready[2] > 0 -> ready[2]--; message[w] = 2
        :: ready[3] > 0 -> ready[3]--; message[w] = 3
        fi;
        unacked[w] = message[w];
#ifdef ACK_FIRST
        unacked[w] = 0;
#endif
        slot[w] = GOT
    }
    :: d_step {
        ALIVE(w) && slot[w] == GOT && !fenced[w] && !db_away ->
        if
#ifndef NO_EPOCH
        :: message[w] != epoch -> acknowledge(w); slot[w] = IDLE
#endif
        :: done -> acknowledge(w); slot[w] = IDLE
        :: else ->
            if
#ifndef TRUST_REDELIVERY
            :: owner && owner != me[w] && live[owner] ->
                deferred[message[w]] = true; /* a copy, confirmed */
                slot[w] = COPIED
#endif
            :: else ->
                seen[w] = fence;
                slot[w] = TAKE
            fi
        fi
    }
    :: d_step {
        ALIVE(w) && slot[w] == COPIED && !fenced[w] ->
        acknowledge(w);
        slot[w] = IDLE
    }
    :: d_step {
        ALIVE(w) && slot[w] == TAKE && !fenced[w] && !db_away ->
        if
        :: mine[w] && owner == me[w] && fence == mine[w] -> slot[w] = OWN /* it was made */
        :: !mine[w] && CLAIMABLE(w) ->
            assert(epoch == message[w]); /* a stale epoch never runs */
            claim(w);
            slot[w] = OWN
        :: else -> slot[w] = GOT; mine[w] = 0
        fi;
        seen[w] = 0
    }
    :: d_step { /* it is made, and its answer lost: the row says later whether it was */
        ALIVE(w) && slot[w] == TAKE && !fenced[w] && no_db[w] && !db_away && !mine[w] &&
            CLAIMABLE(w) ->
        claim(w)
    }
#ifdef TRUST_LOST_ANSWER
    :: d_step { /* it is not made, and taken for made */
        ALIVE(w) && slot[w] == TAKE && !fenced[w] && no_db[w] && !mine[w] ->
        new_fence(w);
        slot[w] = OWN;
        seen[w] = 0
    }
#endif
    /* ---- a run */
    :: d_step {
        ALIVE(w) && slot[w] == OWN && !fenced[w] && phase[w] == UP && grant[w] > 0 ->
        launch(w);
        slot[w] = RUN
    }
    :: d_step {
        ALIVE(w) && slot[w] == MEET && !fenced[w] -> /* tell the runner the new fence */
        if
        :: process[w] -> process[w] = mine[w]
        :: !process[w] && record[w] -> record[w] = mine[w]
        :: else
        fi;
        slot[w] = RUN
    }
    :: d_step {
        ALIVE(w) && slot[w] == RUN && !fenced[w] && !db_away && !process[w] ->
        if
        :: ENDED(w) -> /* it was made */
            record[w] = 0;
            mine[w] = 0;
            slot[w] = TELL
        :: !ENDED(w) && !HOLDS(w) -> fenced[w] = true
        :: !ENDED(w) && HOLDS(w) && record[w] != mine[w] -> /* lost: claimed again in place */
            claim(w);
            slot[w] = OWN
        :: else ->
            assert(!done); /* one terminal state */
            done = true;
            owner = 0;
            record[w] = 0;
            mine[w] = 0;
            slot[w] = TELL
        fi
    }
    :: d_step { /* the end is written, and the answer lost */
        ALIVE(w) && slot[w] == RUN && !fenced[w] && no_db[w] && !db_away && !process[w] &&
            !done && HOLDS(w) && record[w] == mine[w] ->
        done = true;
        owner = 0
    }
    :: d_step {
        ALIVE(w) && slot[w] == TELL && !fenced[w] ->
        acknowledge(w);
        slot[w] = IDLE
    }
    /* Another channel gets our own message back. */
    :: d_step {
        ALIVE(w) && (slot[w] == RUN || slot[w] == OWN) && !fenced[w] && !message[w] && linked[w] &&
            held[w] && !mq_away && !db_away && ready[epoch] > 0 && owner == me[w] ->
        ready[epoch]--;
        message[w] = epoch;
        unacked[w] = epoch
    }
    od
}

/* A process ends by itself; the exit record is written first. */
proctype runners()
{
    do
    :: d_step { process[0] -> record[0] = process[0]; process[0] = 0; length = 0 }
    :: d_step { process[1] -> record[1] = process[1]; process[1] = 0; length = 0 }
    od
}

#ifdef NO_BROKER_WITNESS
#define HELD(id) (false)
#else
#define HELD(id) (held[NAME(id)] && held_by[NAME(id)] == id)
#endif

#ifdef LEASE_OWN_ONLY
#define WAITED(id) SHORT_LEASE
#else
#define WAITED(id) LEASE(id) /* the larger of the watch's own and the row's */
#endif

inline look_at(id)
{
    verdict[id] = false;
    if
    :: !live[id] -> fresh[id] = false; silent[id] = false; silent_for[id] = 0
#ifndef NO_BEAT_WITNESS
    :: live[id] && fresh[id] -> fresh[id] = false; silent[id] = false; silent_for[id] = 0
    :: live[id] && !fresh[id] && HELD(id) -> silent[id] = false; silent_for[id] = 0
    :: live[id] && !fresh[id] && !HELD(id) ->
#else
    :: live[id] && HELD(id) -> fresh[id] = false; silent[id] = false; silent_for[id] = 0
    :: live[id] && !HELD(id) -> fresh[id] = false;
#endif
        silent[id] = true;
        verdict[id] = (silent_for[id] >= WAITED(id))
    fi
}

inline begin_anew(id)
{
    silent[id] = false;
    silent_for[id] = 0;
    verdict[id] = false
}

#ifdef NO_BEAT_GUARD
#define SAME_BEAT(id) (true)
#else
#define SAME_BEAT(id) (!fresh[id])
#endif

inline declare(id)
{
    d_step {
        verdict[id] && !db_away ->
        if
        :: live[id] && SAME_BEAT(id) -> live[id] = false
        :: else
        fi;
        begin_anew(id)
    }
}

inline look()
{
    if
    :: !db_away && !mq_away ->
        look_at(1); look_at(2); look_at(3); look_at(4); look_at(5); look_at(6)
    :: else ->
        begin_anew(1); begin_anew(2); begin_anew(3); begin_anew(4); begin_anew(5); begin_anew(6)
    fi;
    turn++
}

proctype watch()
{
    do
    :: declare(1)
    :: declare(2)
    :: declare(3)
    :: declare(4)
    :: declare(5)
    :: declare(6)
    od
}

#define ABANDONED (!done && owner && !live[owner] && epoch < EPOCHS - 1)

/* Relay and reconciler. */
proctype repair()
{
    do
    :: d_step {
        outbox && !db_away && !mq_away ->
        put(outbox);
        outbox = 0
    }
    :: d_step { /* it crashed between publish and delete */
        faults && outbox && !db_away && !mq_away ->
        faults--;
        put(outbox)
    }
    :: d_step {
        ABANDONED && !db_away && (faults || !ON_ITS_WAY(epoch)) ->
        if
        :: ON_ITS_WAY(epoch) -> faults--
        :: else
        fi;
        epoch++;
        outbox = epoch
    }
    od
}

inline kill(w)
{
    forget(w);
    phase[w] = DOWN;
    stopped[w] = false;
    if
    :: held[w] && !no_mq[w] -> broker_drops(w)
    :: else
    fi
}

proctype troubles()
{
    byte w;
    do
    :: atomic {
        faults ->
        if
        :: w = 0
        :: w = 1
        fi;
        if
        :: phase[w] != DOWN -> faults--; kill(w)
        :: phase[w] != DOWN && !stopped[w] -> faults--; stopped[w] = true
#ifndef HOSTS_ONLY
        :: !no_db[w] -> faults--; no_db[w] = true
        :: !no_mq[w] -> faults--; no_mq[w] = true
        :: !no_db[w] && !no_mq[w] -> faults--; no_db[w] = true; no_mq[w] = true
        :: w == 0 && !db_away -> faults--; db_away = true
        :: w == 0 && !mq_away ->
            faults--;
            mq_away = true;
            broker_drops(0);
            broker_drops(1)
#endif
        fi;
        w = 0
    }
#if ROLLS > 0
    :: d_step {
        rolls && phase[0] == UP && !stopped[0] ->
        rolls--;
        set_longer = !set_longer;
        kill(0)
    }
#endif
    /* What they lead to. */
    :: d_step { held[0] && (no_mq[0] || stopped[0] || !linked[0]) -> broker_drops(0) }
    :: d_step { held[1] && (no_mq[1] || stopped[1] || !linked[1]) -> broker_drops(1) }
    /* Their ends. */
    :: d_step { stopped[0] -> stopped[0] = false }
    :: d_step { stopped[1] -> stopped[1] = false }
    :: d_step { no_db[0] -> no_db[0] = false }
    :: d_step { no_db[1] -> no_db[1] = false }
    :: d_step { no_mq[0] -> no_mq[0] = false }
    :: d_step { no_mq[1] -> no_mq[1] = false }
    :: d_step { db_away -> db_away = false }
    :: d_step { mq_away -> mq_away = false }
    od
}

#define WAITS(w)                                                                                   \
    ((slot[w] == IDLE && phase[w] == UP && !SOME_READY) || (slot[w] == RUN && process[w]) ||       \
     (slot[w] == OWN && grant[w] == 0))
#define QUIET(w)                                                                                   \
    (stopped[w] || (phase[w] == DOWN && (no_mq[w] || !held[w])) ||                                 \
     (phase[w] == ADOPT && process[w] && adopting[w] < ADOPTION && !fenced[w]) ||                  \
     (phase[w] != DOWN &&                                                                          \
      (TROUBLE(w) || (WAITS(w) && !fenced[w] && linked[w] && held[w]))))
#define REPAIRED                                                                                   \
    (db_away || ((mq_away || !outbox) && !(ABANDONED && CALM && !ON_ITS_WAY(epoch))))

#define CONDEMNED                                                                                  \
    (verdict[1] || verdict[2] || verdict[3] || verdict[4] || verdict[5] || verdict[6])

/* What nothing refers to is as if it were not there. */
inline age(id)
{
    if
    :: id != me[NAME(id)] && id != owner && id != held_by[NAME(id)] ->
        live[id] = false;
        fresh[id] = false;
        silent[id] = false;
        silent_for[id] = 0;
        verdict[id] = false;
        longer[id] = false;
        keeps[id] = false
    :: else
    fi;
    if
    :: silent[id] && silent_for[id] < LEASE(id) -> silent_for[id]++
    :: else
    fi
}

/* Silence grows, grants run out, and with them the processes. */
inline host_tick(w)
{
    if
    :: silence[w] < GRANT(w) -> silence[w]++
    :: else
    fi;
    if
    :: grant[w] > 0 -> grant[w]--
    :: else
    fi;
    if
    :: phase[w] == ADOPT && process[w] ->
        /* nothing that is being adopted ends for want of a ping */
        assert(grant[w] > 0 || silence[w] == GRANT(w) || !ALIVE(w));
        if
        :: adopting[w] < ADOPTION -> adopting[w]++
        :: else
        fi
    :: else
    fi;
#ifndef NO_SELF_FENCE
    if
    :: grant[w] == 0 -> process[w] = 0
    :: else
    fi;
#endif
}

inline come_back(e)
{
    if
    :: deferred[e] && !mq_away -> deferred[e] = false; put(e)
    :: else
    fi
}

inline pass()
{
    assert(done || owner || ON_ITS_WAY(epoch)); /* never without a home */
    host_tick(0);
    host_tick(1);
    age(1); age(2); age(3); age(4); age(5); age(6);
    come_back(1);
    come_back(2);
    come_back(3);
    turn = 0;
    if
    :: (process[0] || process[1]) && CALM && phase[0] != ADOPT && phase[1] != ADOPT -> length++
    :: else -> length = 0
    fi
}

proctype clock()
{
    do
    :: atomic {
        QUIET(0) && QUIET(1) && REPAIRED && (!CALM || (length < 2 && !CONDEMNED)) ->
        if
        :: turn == 0 -> heart(0)
        :: turn == 1 -> heart(1)
        :: turn == 2 -> d_step { look() }
        :: turn == 3 -> d_step { pass() }
        fi
    }
    od
}

init
{
    atomic {
        if
        :: epoch = 1
        :: epoch = 2; ready[1] = 1 /* it was put on the queue again before its first message came */
        fi;
        outbox = epoch;
#if ROLLS > 0
        if
        :: set_longer = true
        :: skip
        fi;
#endif
        phase[0] = BOOT; phase[1] = BOOT;
        slot[0] = IDLE; slot[1] = IDLE;
        silence[0] = SHORT_GRANT; silence[1] = SHORT_GRANT;
        run worker(0); run worker(1);
        run runners(); run watch(); run repair(); run troubles(); run clock()
    }
}
