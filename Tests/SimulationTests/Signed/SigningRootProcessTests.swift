import AppStore
import AppStoreSimulator
import Foundation
import Testing

@Suite("A simulator keeps its signing authority and tells whom to trust", .serialized)
struct SigningRootProcessTests {
    @Test("A restarted simulator signs as before, and one file of roots serves HTTPS and signed texts")
    func restart() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "roots-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (authority, root) = (folder.appending(path: "authority.pem"), folder.appending(path: "root.pem"))
        let (both, key) = (folder.appending(path: "both.pem"), folder.appending(path: "server-key.p8"))
        let arguments = [
            "simulator", "--port", "0", "--customers", "1", "--sandbox-customers", "0", "--signing-authority",
            authority.path, "--signing-root-file", root.path, "--tls", "--tls-root-file", both.path,
            "--server-key-file", key.path,
        ]
        var roots: [String] = []
        var keys: [String] = []
        for _ in 0..<2 {
            let simulator = try PerennialProcess(arguments, environment: [:])
            _ = try #require(try await simulator.address(), "\(simulator.said)")
            #expect(await simulator.stop() == 0)
            try simulator.forget()
            roots.append(try String(contentsOf: root, encoding: .utf8))
            keys.append(try String(contentsOf: key, encoding: .utf8))
        }
        #expect(roots[0] == roots[1] && keys[0] == keys[1])
        #expect(try PretendServerKey(pem: keys[0]).pem == keys[0])
        let kept = try SigningAuthority(stored: String(contentsOf: authority, encoding: .utf8))
        #expect(kept.rootPEM == roots[0])
        for file in [authority, key] {
            let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(file.lastPathComponent)")
        }

        let trusted = try TrustedRoots(pem: String(contentsOf: both, encoding: .utf8))
        let text = try kept.sign(Array(#"{"signedDate":\#(Int64(Date().timeIntervalSince1970 * 1000))}"#.utf8))
        let verifier = SignedTextVerifier(trusting: try SigningRoot(trusted))
        #expect(try await verifier.verify(Array(text.utf8)).chain.subjects.last == "CN=Pretend root")
        let stranger = try SigningAuthority().sign(Array(#"{"signedDate":1}"#.utf8))
        await #expect(throws: SignedTextRefusal.otherRoot) { try await verifier.verify(Array(stranger.utf8)) }
    }

    @Test("A file that is no authority is named, and the simulator does not start")
    func unreadable() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "no-authority-\(UUID())")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("nothing".utf8).write(to: file)
        let simulator = try PerennialProcess(
            ["simulator", "--port", "0", "--signing-authority", file.path], environment: [:])
        #expect(await simulator.end() == 1)
        #expect(simulator.said.contains("\(file.path) cannot be used: it does not hold one private key"))
        try simulator.forget()
    }

    @Test(
        "A file that cannot be written is named with the reason of the system",
        arguments: [
            ["--signing-authority"], ["--signing-root-file"], ["--server-key-file"], ["--tls", "--tls-root-file"],
        ])
    func unwritable(options: [String]) async throws {
        let simulator = try PerennialProcess(
            ["simulator", "--port", "0"] + options + ["/nonexistent/x"], environment: [:])
        #expect(await simulator.end() == 1)
        let said = simulator.said.split(separator: "\n").last ?? ""
        #expect(said.hasPrefix("perennial: /nonexistent/x cannot be "), "\(said)")
        #expect(said.contains(": No such file or directory; give another \(options.last ?? "")."), "\(said)")
        try simulator.forget()
    }
}
