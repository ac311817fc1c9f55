// SPDX-License-Identifier: MIT
// worker PORT CONCURRENCY: runs each job's command as a child process and keeps what it wrote.
'use strict';
const { execFile } = require('node:child_process');
const { Worker } = require('bullmq');

const [port, concurrency] = process.argv.slice(2).map(Number);

function run(job) {
    return new Promise((resolve, reject) => {
        const [program, ...args] = job.data.argv;
        execFile(program, args, (fault, stdout, stderr) => {
            if (fault && typeof fault.code !== 'number')
                reject(fault);
            else
                resolve([fault ? fault.code : 0, stdout, stderr]);
        });
    });
}

const worker = new Worker('bench', run, {
    connection: { host: '127.0.0.1', port },
    concurrency,
});
worker.on('error', (fault) => console.error(fault));
worker.waitUntilReady().then(() => console.log('ready'));
process.on('SIGTERM', () => worker.close().then(() => process.exit(0)));
