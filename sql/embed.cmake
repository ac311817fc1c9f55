# Writes OUT, a C file with the table of migrations made from the files in DIR. Bytes, not string
# literals: C promises no more than 4095 characters for those.
file(GLOB files RELATIVE ${DIR} ${DIR}/[0-9][0-9][0-9]_*.sql)
list(SORT files)
set(texts "")
set(rows "")
foreach(file ${files})
    string(REGEX REPLACE "^0*([0-9]+)_(.*)\\.sql$" "\\1" number ${file})
    string(REGEX REPLACE "^0*([0-9]+)_(.*)\\.sql$" "\\2" name ${file})
    file(READ ${DIR}/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
    string(APPEND texts "static const char text_${number}[] = {\n${bytes}0};\n")
    string(APPEND rows "    {${number}, \"${name}\", text_${number}},\n")
endforeach()
file(WRITE ${OUT}.new
    "/* Made from sql/ by sql/embed.cmake. */\n#include \"common/store/migration.h\"\n\n${texts}\n"
    "const struct migration migrations[] = {\n${rows}};\n"
    "const size_t migration_count = ARRAY_LEN(migrations);\n")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
