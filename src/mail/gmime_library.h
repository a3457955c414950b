// GMime, which writes and parses RFC 5322, loaded with the first mail. Internal to this module. Thread-safe; its
// objects belong to one thread at a time.
#pragma once

#include <memory>

#include <gmime/gmime.h>

#include "base/late_library.h"

#undef g_free  // a macro that calls something else, in newer versions

namespace playfs::mail {

inline constinit const LateLibrary kGMime("libgmime-3.0.so.0", "libgmime-3.0-0");

// GLib's are found through it, which needs them.
PLAYFS_LATE(kGMime, g_date_time_new_from_unix_utc);
PLAYFS_LATE(kGMime, g_date_time_unref);
PLAYFS_LATE(kGMime, g_free);
PLAYFS_LATE(kGMime, g_mime_content_type_get_mime_type);
PLAYFS_LATE(kGMime, g_mime_content_type_is_type);
PLAYFS_LATE(kGMime, g_mime_data_wrapper_new_with_stream);
PLAYFS_LATE(kGMime, g_mime_data_wrapper_write_to_stream);
PLAYFS_LATE(kGMime, g_mime_filter_charset_new);
PLAYFS_LATE(kGMime, g_mime_filter_complete);
PLAYFS_LATE(kGMime, g_mime_header_get_raw_value);
PLAYFS_LATE(kGMime, g_mime_header_list_get_count);
PLAYFS_LATE(kGMime, g_mime_header_list_get_header);
PLAYFS_LATE(kGMime, g_mime_header_list_get_header_at);
PLAYFS_LATE(kGMime, g_mime_header_set_raw_value);
PLAYFS_LATE(kGMime, g_mime_init);
PLAYFS_LATE(kGMime, g_mime_message_get_addresses);
PLAYFS_LATE(kGMime, g_mime_message_get_message_id);
PLAYFS_LATE(kGMime, g_mime_message_get_mime_part);
PLAYFS_LATE(kGMime, g_mime_message_new);
PLAYFS_LATE(kGMime, g_mime_message_set_date);
PLAYFS_LATE(kGMime, g_mime_message_set_mime_part);
PLAYFS_LATE(kGMime, g_mime_multipart_get_count);
PLAYFS_LATE(kGMime, g_mime_multipart_get_part);
PLAYFS_LATE(kGMime, g_mime_multipart_get_type);
PLAYFS_LATE(kGMime, g_mime_object_append_header);
PLAYFS_LATE(kGMime, g_mime_object_get_content_type);
PLAYFS_LATE(kGMime, g_mime_object_get_content_type_parameter);
PLAYFS_LATE(kGMime, g_mime_object_get_disposition);
PLAYFS_LATE(kGMime, g_mime_object_get_header);
PLAYFS_LATE(kGMime, g_mime_object_get_header_list);
PLAYFS_LATE(kGMime, g_mime_object_get_type);
PLAYFS_LATE(kGMime, g_mime_object_set_content_type_parameter);
PLAYFS_LATE(kGMime, g_mime_object_write_to_stream);
PLAYFS_LATE(kGMime, g_mime_parser_construct_message);
PLAYFS_LATE(kGMime, g_mime_parser_new_with_stream);
PLAYFS_LATE(kGMime, g_mime_part_get_content);
PLAYFS_LATE(kGMime, g_mime_part_get_filename);
PLAYFS_LATE(kGMime, g_mime_part_get_type);
PLAYFS_LATE(kGMime, g_mime_part_new_with_type);
PLAYFS_LATE(kGMime, g_mime_part_set_content);
PLAYFS_LATE(kGMime, g_mime_part_set_content_encoding);
PLAYFS_LATE(kGMime, g_mime_references_free);
PLAYFS_LATE(kGMime, g_mime_references_get_message_id);
PLAYFS_LATE(kGMime, g_mime_references_length);
PLAYFS_LATE(kGMime, g_mime_references_parse);
PLAYFS_LATE(kGMime, g_mime_stream_mem_get_byte_array);
PLAYFS_LATE(kGMime, g_mime_stream_mem_get_type);
PLAYFS_LATE(kGMime, g_mime_stream_mem_new);
PLAYFS_LATE(kGMime, g_mime_stream_mem_new_with_buffer);
PLAYFS_LATE(kGMime, g_mime_utils_header_decode_text);
PLAYFS_LATE(kGMime, g_mime_utils_header_unfold);
PLAYFS_LATE(kGMime, g_object_unref);
PLAYFS_LATE(kGMime, g_type_check_instance_cast);
PLAYFS_LATE(kGMime, g_type_check_instance_is_a);
PLAYFS_LATE(kGMime, internet_address_group_get_members);
PLAYFS_LATE(kGMime, internet_address_group_get_type);
PLAYFS_LATE(kGMime, internet_address_list_get_address);
PLAYFS_LATE(kGMime, internet_address_list_length);
PLAYFS_LATE(kGMime, internet_address_list_parse);
PLAYFS_LATE(kGMime, internet_address_mailbox_get_addr);
PLAYFS_LATE(kGMime, internet_address_mailbox_get_type);

/// Call before using GMime. The first call initialises it for the life of the process.
void set_up_gmime();

struct Unref {
  void operator()(gpointer object) const { g_object_unref(object); }
};
/// One reference to an object of GMime.
template <class T>
using Ref = std::unique_ptr<T, Unref>;

struct Free {
  void operator()(gpointer memory) const { g_free(memory); }
};
/// A text that GMime allocated.
using Text = std::unique_ptr<char, Free>;

}  // namespace playfs::mail
