import Foundation
import Testing

@testable import perennial

@Suite("`perennial doctor` looks at what lets others in") struct DoctorTests {
    private func findings(_ environment: [String: String]) throws -> [String: String] {
        let (settings, warnings) = try SettingsSources(environment: environment).settings(needing: [])
        var diagnosis = Diagnosis(settings: settings, shows: false)
        diagnosis.look(at: settings, warnings)
        return Dictionary(
            uniqueKeysWithValues: diagnosis.findings.filter { !$0.isFine }.map { ($0.check, $0.sentence) })
    }

    @Test(arguments: ["0.0.0.0/0", "::/0", "10.0.0.7, 203.0.113.5/0", "fd00::/8,::/0"])
    func `a proxy setting that trusts everybody is wrong`(_ setting: String) throws {
        let found = try findings(["PERENNIAL_TRUSTED_PROXIES": setting])
        #expect(found["trusted_proxies"]?.hasSuffix("name the proxies alone.") == true, "\(found)")
    }

    @Test(arguments: ["10.0.0.7", "10.0.0.0/8,fd00::/8", ""])
    func `one that names proxies is not`(_ setting: String) throws {
        #expect(try findings(["PERENNIAL_TRUSTED_PROXIES": setting])["trusted_proxies"] == nil)
    }

    @Test(arguments: [(0o600, false), (0o400, false), (0o640, true), (0o604, true), (0o644, true)])
    func `a master key that other accounts read is wrong, also behind a link`(_ mode: Int, _ isWrong: Bool) throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID())")
        let link = FileManager.default.temporaryDirectory.appending(path: "link-\(UUID())")
        try Data(SettingsTests.key.utf8).write(to: file)
        defer { for url in [file, link] { try? FileManager.default.removeItem(at: url) } }
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        for path in [file.path, link.path] {
            let found = try findings(["PERENNIAL_MASTER_KEY_FILE": path])["key_file"]
            #expect((found != nil) == isWrong, "\(path)")
            #expect(found?.hasSuffix("run `chmod 600 \(path)`.") ?? true)
        }
    }
}
