fn main() -> std::process::ExitCode {
    chorusctl::main()
}
