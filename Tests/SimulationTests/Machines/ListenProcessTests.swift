import Testing

/// `perennial serve` as a process of its own, where it cannot listen.
@Suite("A server that cannot listen says what to do")
struct ListenProcessTests {
    @Test(
        "Which setting gives the address, and what it takes",
        .timeLimit(.minutes(1)), arguments: ["bad host", "999.1.1.1", "192.0.2.1"])
    func badHost(host: String) async throws {
        try await PretendWorld.with(seed: 5, customers: 1, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            let process = try PerennialProcess(["serve"], in: world, further: ["PERENNIAL_HTTP_HOST": host])
            #expect(await process.end() == 1)
            let remedy = "PERENNIAL_HTTP_HOST (--http-host) takes an address of this machine or its name"
            #expect(process.said.contains("The server on \(host):0 stopped: "), "\(process.said)")
            #expect(process.said.contains(remedy), "\(process.said)")
            try process.forget()
        }
    }
}
