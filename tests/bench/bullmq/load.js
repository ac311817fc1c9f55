// SPDX-License-Identifier: MIT
// load OPTIONS: what bench-load does, for BullMQ. add() is answered when Redis has fsynced.
'use strict';
const fs = require('node:fs');
const { Queue } = require('bullmq');

const options = JSON.parse(process.argv[2]);
const { port, connections, count = 0, first = 0, rate = 0, command } = options;
const seconds = options.seconds || (rate ? count / rate : 0);
const now = () => Number(process.hrtime.bigint());
const records = [];

async function client(number, queue, start) {
    const total = rate ? Math.floor(rate * seconds) : count || Infinity;
    const end = start + seconds * 1e9;
    for (let at = number; at < total; at += connections) {
        let due = now();
        if (rate) {
            due = start + (at / rate) * 1e9;
            const wait = (due - now()) / 1e6;
            if (wait > 0)
                await new Promise((resolve) => setTimeout(resolve, wait));
        }
        if (seconds && due >= end)
            break;
        const text = String(at + first).padStart(8, '0');
        const argv = command.map((word) => word.replace('@NUMBER@', text));
        const sent = now();
        await queue.add('run', { argv });
        records.push([at + first, Math.round(due), sent, now()]);
    }
}

async function main() {
    const queues = [];
    for (let i = 0; i < connections; i++) {
        const queue = new Queue('bench', { connection: { host: '127.0.0.1', port } });
        await queue.waitUntilReady();
        queues.push(queue);
    }
    const start = now();
    await Promise.all(queues.map((queue, number) => client(number, queue, start)));
    const used = process.cpuUsage();
    const times = records.map((record) => record[3] - record[1]).sort((a, b) => a - b);
    const at = (part) => times[Math.min(times.length - 1, Math.floor(part * times.length))] / 1e6;
    if (options.log)
        fs.writeFileSync(options.log, records.map((r) => `${r.join(' ')} 201 -\n`).join(''));
    console.log(JSON.stringify({
        requests: records.length,
        start_ns: start,
        seconds: (Math.max(...records.slice(-connections).map((r) => r[3])) - start) / 1e9,
        cpu_s: (used.user + used.system) / 1e6,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        max_ms: at(1),
        statuses: { 201: records.length },
    }));
    await Promise.all(queues.map((queue) => queue.close()));
}

main().catch((fault) => {
    console.error(fault);
    process.exit(1);
});
