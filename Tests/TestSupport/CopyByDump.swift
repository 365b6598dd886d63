import Foundation

/// Dumps one database and restores the dump into another, without a schema of ours, as operators do with `pg_dump` and
/// `pg_restore`.
package func copyByDump(from source: String, into target: String) async throws {
    let programs = try PrivateCluster.findPrograms()
    let folder = try ServerFolder(prefix: "pd")
    let dump = "\(folder.path)/perennial.dump"
    try await folder.run("\(programs)/pg_dump", ["--format=custom", "--file=\(dump)", "--dbname=\(source)"])
    try await folder.run("\(programs)/pg_restore", ["--exit-on-error", "--dbname=\(target)", dump])
    try folder.remove()
}

/// Runs a script of SQL that gzip compressed in an empty database.
package func restore(_ file: String, into target: String) async throws {
    let script = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UInt64.random(in: 0 ... .max))")
    defer { try? FileManager.default.removeItem(at: script) }
    try await unzipped(file).write(to: script, atomically: false, encoding: .utf8)
    let psql = try PrivateCluster.findPrograms() + "/psql"
    _ = try await output(
        of: psql, ["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname=\(target)", "--file=\(script.path)"])
}

/// The text of a file that gzip compressed.
package func unzipped(_ file: String) async throws -> String {
    try await output(of: "gzip", ["-dc", file])
}

/// What a program of the path writes; it must end with 0.
private func output(of program: String, _ arguments: [String]) async throws -> String {
    let file = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UInt64.random(in: 0 ... .max))")
    try Data().write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.standardInput = FileHandle.nullDevice
    // Standard error is that of the tests, so that a failure says why.
    process.standardOutput = try FileHandle(forWritingTo: file)
    try process.run()
    while process.isRunning { try await Task.sleep(for: .milliseconds(5)) }
    guard process.terminationStatus == 0 else {
        throw TestSupportError("\(program) ended with status \(process.terminationStatus).")
    }
    return try String(contentsOf: file, encoding: .utf8)
}
