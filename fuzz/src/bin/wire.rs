//! What another program may say to a keeper or to its program, and the head of a request to the sandbox's proxy.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    tiller_keeper::fuzzing::frames(data);
    tiller_process::fuzzing::proxy_request(data);
});
