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
