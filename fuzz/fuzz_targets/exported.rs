#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chorus_tests::fuzz::exported(data));
