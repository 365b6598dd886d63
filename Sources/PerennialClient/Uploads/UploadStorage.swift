public import Foundation

/// Where a queue keeps its uploads: a struct of closures, so that an app may keep them in its own database.
///
/// One queue uses a storage at a time. What `save` stored is there after the process was killed.
public struct UploadStorage: Sendable {
    /// One stored upload.
    public struct Entry: Sendable, Hashable {
        /// Its name.
        public let id: String
        /// Its bytes, as they were saved.
        public let bytes: Data

        /// Makes an entry.
        public init(id: String, bytes: Data) {
            self.id = id
            self.bytes = bytes
        }
    }

    /// Everything that is stored, in any order.
    public var load: @Sendable () async throws -> [Entry]
    /// Stores an entry: all of it or nothing, and durably when it returns. It replaces one of the same name.
    public var save: @Sendable (Entry) async throws -> Void
    /// Removes an entry; one that is not there is no error.
    public var remove: @Sendable (_ id: String) async throws -> Void
    /// Puts an entry that cannot be read where `load` finds it no more and a person does.
    public var setAside: @Sendable (_ id: String) async throws -> Void

    /// Makes a storage.
    public init(
        load: @escaping @Sendable () async throws -> [Entry],
        save: @escaping @Sendable (Entry) async throws -> Void,
        remove: @escaping @Sendable (_ id: String) async throws -> Void,
        setAside: @escaping @Sendable (_ id: String) async throws -> Void
    ) {
        self.load = load
        self.save = save
        self.remove = remove
        self.setAside = setAside
    }
}

extension UploadStorage {
    /// A folder with one file for each upload. It is made where it is missing, for the process's account alone.
    ///
    /// An entry is written beside its place, forced to the disk and renamed, so that a killed process leaves the whole
    /// entry or none. An entry that cannot be read goes to the folder `unreadable` in it, and stays there.
    public static func folder(_ url: URL) -> UploadStorage {
        let folder = UploadFolder(url: url)
        return UploadStorage(
            load: { try await folder.onItsQueue { try folder.load() } },
            save: { entry in try await folder.onItsQueue { try folder.save(entry) } },
            remove: { id in try await folder.onItsQueue { try folder.remove(id) } },
            setAside: { id in try await folder.onItsQueue { try folder.setAside(id) } })
    }
}

/// A folder of uploads on the disk.
private struct UploadFolder: Sendable {
    static let ending = "upload"
    /// The ending of a file that is being written. One that is found was never promised to be stored.
    static let draftEnding = "draft"

    let url: URL
    /// Disks are slow, so nothing waits for them on the threads of Swift's concurrency; one after the other.
    private let queue = DispatchQueue(label: "perennial.uploads")

    /// Does work with the disk on the queue of the folder.
    func onItsQueue<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: work)) }
        }
    }

    /// Reads the entries, and removes drafts.
    func load() throws -> [UploadStorage.Entry] {
        try make(url)
        let files = try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
        for draft in files where draft.pathExtension == Self.draftEnding {
            try FileManager.default.removeItem(at: draft)
        }
        return try files.filter { $0.pathExtension == Self.ending }.map {
            UploadStorage.Entry(id: $0.deletingPathExtension().lastPathComponent, bytes: try Data(contentsOf: $0))
        }
    }

    /// Writes an entry, so that it is whole on the disk or not there.
    func save(_ entry: UploadStorage.Entry) throws {
        let draft = file(entry.id, Self.draftEnding)
        try entry.bytes.write(to: draft)
        try force(draft)
        try move(draft, to: file(entry.id, Self.ending))
        try force(url)
    }

    /// Removes an entry, where it is there.
    func remove(_ id: String) throws {
        guard unlink(file(id, Self.ending).path) != 0, errno != ENOENT else { return }
        throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }

    /// Moves an entry that cannot be read out of the way.
    func setAside(_ id: String) throws {
        let aside = url.appendingPathComponent("unreadable")
        try make(aside)
        let name = "\(id)-\(UUID().uuidString).\(Self.ending)"
        try move(file(id, Self.ending), to: aside.appendingPathComponent(name))
    }

    /// Returns the place of an entry, or of its draft.
    private func file(_ id: String, _ ending: String) -> URL {
        url.appendingPathComponent(id).appendingPathExtension(ending)
    }

    private func make(_ folder: URL) throws {
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    private func move(_ file: URL, to place: URL) throws {
        guard rename(file.path, place.path) != 0 else { return }
        throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }

    /// Waits until a file, or the names in a folder, are on the disk.
    private func force(_ place: URL) throws {
        let descriptor = open(place.path, O_RDONLY)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }
}

/// An upload as the queue stores it.
struct StoredUpload: Codable {
    /// The form of the bytes; a newer one is set aside, not misread.
    static let formNumber = 1

    var form = StoredUpload.formNumber
    let queuedAt: Date
    let upload: Upload
}

extension StoredUpload {
    /// Reads stored bytes; nil where they are damaged, of a newer form, or not those of their name.
    init?(entry: UploadStorage.Entry) {
        guard let stored = try? JSONText.decoder().decode(Self.self, from: entry.bytes),
            stored.form == Self.formNumber, stored.upload.id == entry.id
        else { return nil }
        self = stored
    }

    var entry: UploadStorage.Entry {
        get throws { UploadStorage.Entry(id: upload.id, bytes: try JSONText.encode(self)) }
    }
}
