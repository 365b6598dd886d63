import Foundation

/// An upload as it is stored.
struct StoredUpload {
    /// The form of the bytes; a newer one is set aside, not misread.
    static let formNumber = 1

    let upload: Upload
    /// When it was added.
    let queuedAt: Date

    private struct Form: Codable {
        let form: Int
        let queuedAt: Date
        let upload: Upload
    }

    init(upload: Upload, queuedAt: Date) {
        (self.upload, self.queuedAt) = (upload, queuedAt)
    }

    /// Reads stored bytes; nil where they are damaged, of a newer form, or not those of their name.
    init?(entry: UploadStorage.Entry) {
        guard let form = try? JSONText.decoder().decode(Form.self, from: entry.bytes), form.form == Self.formNumber,
            form.upload.id == entry.id
        else { return nil }
        self.init(upload: form.upload, queuedAt: form.queuedAt)
    }

    /// The bytes to store, by the upload's name.
    var entry: UploadStorage.Entry {
        get throws {
            let form = Form(form: Self.formNumber, queuedAt: queuedAt, upload: upload)
            return UploadStorage.Entry(id: upload.id, bytes: try JSONText.encode(form))
        }
    }
}
